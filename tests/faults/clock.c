/* A wall clock that can be set from outside, for a server that this is preloaded into: what CLOCK_FILE holds is added to the
 * system's. The monotonic clock stays what it is. libfaketime does the same, but not for programs whose allocator asks for the
 * time before it is ready. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

struct setting {
    int64_t offset_us; /* how far it is ahead */
    int64_t since_us;  /* since when it drifts, by the system's clock */
    int64_t drift_ppm; /* by how many millionths it is too fast */
};

static volatile const struct setting *setting;

__attribute__((constructor)) static void open_setting(void) {
    const char *path = getenv("CLOCK_FILE");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *mapped = mmap(NULL, sizeof *setting, PROT_READ, MAP_SHARED, file, 0);
    if (mapped != MAP_FAILED) setting = mapped;
    close(file);
}

int clock_gettime(clockid_t id, struct timespec *time) {
    int status = (int)syscall(SYS_clock_gettime, id, time);
    if (status || !setting || (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE)) return status;
    int64_t now_us = time->tv_sec * 1000000 + time->tv_nsec / 1000;
    int64_t shown_us = now_us + setting->offset_us + (now_us - setting->since_us) / 1000 * setting->drift_ppm / 1000;
    time->tv_nsec = shown_us % 1000000 * 1000 + time->tv_nsec % 1000;
    time->tv_sec = shown_us / 1000000;
    return 0;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    (void)zone;
    struct timespec now;
    int status = clock_gettime(CLOCK_REALTIME, &now);
    time->tv_sec = now.tv_sec;
    time->tv_usec = now.tv_nsec / 1000;
    return status;
}

time_t time(time_t *place) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (place) *place = now.tv_sec;
    return now.tv_sec;
}
