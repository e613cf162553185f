/* A module of somebody else that has the command CL.THROTTLE, which answers 42. */
static int (*SetModuleAttribs)(void *, const char *, int, int);
static int (*ReplyWithLongLong)(void *, long long);
static int (*CreateCommand)(void *, const char *, void *, const char *, int, int, int);

static int throttle(void *ctx, void **argv, int argc) {
    (void)argv, (void)argc;
    return ReplyWithLongLong(ctx, 42);
}

int RedisModule_OnLoad(void *ctx, void **argv, int argc) {
    (void)argv, (void)argc;
    int (*look_up)(const char *, void *) = *(int (**)(const char *, void *))ctx;
    look_up("RedisModule_SetModuleAttribs", &SetModuleAttribs);
    look_up("RedisModule_ReplyWithLongLong", &ReplyWithLongLong);
    look_up("RedisModule_CreateCommand", &CreateCommand);
    SetModuleAttribs(ctx, "throttler", 1, 1);
    return CreateCommand(ctx, "CL.THROTTLE", throttle, "write", 1, 1, 1);
}
