/* A module of somebody else with a type of its own: `FOREIGN.SET key number`. It names what it needs of the server
 * itself, so that no header is needed to compile it. */
#include <stddef.h>
#include <stdint.h>

struct methods {
    uint64_t version;
    void *(*rdb_load)(void *io, int version);
    void (*rdb_save)(void *io, void *value);
    void (*aof_rewrite)(void *io, void *key, void *value);
    size_t (*mem_usage)(const void *value);
    void (*digest)(void *digest, void *value);
    void (*free)(void *value);
};

static void *type;
static void *(*Alloc)(size_t);
static void (*Free)(void *);
static uint64_t (*LoadUnsigned)(void *);
static void (*SaveUnsigned)(void *, uint64_t);
static void *(*OpenKey)(void *, void *, int);
static void (*CloseKey)(void *);
static int (*ModuleTypeSetValue)(void *, void *, void *);
static int (*StringToLongLong)(void *, long long *);
static int (*ReplyWithLongLong)(void *, long long);
static int (*SetModuleAttribs)(void *, const char *, int, int);
static void *(*CreateDataType)(void *, const char *, int, void *);
static int (*CreateCommand)(void *, const char *, void *, const char *, int, int, int);

static void *rdb_load(void *io, int version) {
    (void)version;
    uint64_t *value = Alloc(sizeof *value);
    *value = LoadUnsigned(io);
    return value;
}

static void rdb_save(void *io, void *value) { SaveUnsigned(io, *(uint64_t *)value); }

static void free_value(void *value) { Free(value); }

static int set(void *ctx, void **argv, int argc) {
    long long number = 0;
    if (argc == 3) StringToLongLong(argv[2], &number);
    void *key = OpenKey(ctx, argv[1], 3);
    uint64_t *value = Alloc(sizeof *value);
    *value = (uint64_t)number;
    ModuleTypeSetValue(key, type, value);
    CloseKey(key);
    return ReplyWithLongLong(ctx, number);
}

int RedisModule_OnLoad(void *ctx, void **argv, int argc) {
    (void)argv, (void)argc;
    int (*look_up)(const char *, void *) = *(int (**)(const char *, void *))ctx;
#define LOOK_UP(name) look_up("RedisModule_" #name, &name)
    LOOK_UP(Alloc), LOOK_UP(Free), LOOK_UP(LoadUnsigned), LOOK_UP(SaveUnsigned), LOOK_UP(OpenKey), LOOK_UP(CloseKey);
    LOOK_UP(ModuleTypeSetValue), LOOK_UP(StringToLongLong), LOOK_UP(ReplyWithLongLong), LOOK_UP(SetModuleAttribs);
    LOOK_UP(CreateDataType), LOOK_UP(CreateCommand);
    SetModuleAttribs(ctx, "foreign", 1, 1);
    struct methods methods = {1, rdb_load, rdb_save, NULL, NULL, NULL, free_value};
    type = CreateDataType(ctx, "foreign-t", 1, &methods);
    return type ? CreateCommand(ctx, "FOREIGN.SET", set, "write", 1, 1, 1) : 1;
}
