#include "above.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LATE_NS = 10 * 1000 * 1000 };

static enum { NONE, OBJECTS, ONOFF, REQUESTS } kind;
static const char *next_word;
static uint64_t start_ns, left_bytes, seed;
static uint64_t on_ns, off_ns, off_at_ns, sent_in_on;
static uint64_t object_bytes, think_ns;
static bool asked;

static uint64_t clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static FILE *table(const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", getenv("QBKIT_APP_OUT"), name);
    FILE *file = fopen(path, "we");
    if (!file) {
        fprintf(stderr, "cannot write %s: %s\n", path, strerror(errno));
        exit(1);
    }
    setvbuf(file, NULL, _IOLBF, 0); /* a driver may end by a signal */
    fputs("time_ns,bytes\n", file);
    return file;
}

static void released(uint64_t at_ns, uint64_t bytes)
{
    static FILE *rows;
    if (!rows) rows = table("objects.csv");
    fprintf(rows, "%lu,%lu\n", at_ns, bytes);
}

/* A time of this mean, exponential if there is a seed: xorshift64*. */
static uint64_t drawn(uint64_t mean_ns)
{
    if (!seed) return mean_ns;
    seed ^= seed >> 12, seed ^= seed << 25, seed ^= seed >> 27;
    double part = (double)((seed * 2685821657736338717u) >> 11) / 9007199254740992.0;
    return (uint64_t)(-log(1 - part) * (double)mean_ns);
}

bool app_given(void)
{
    return getenv("QBKIT_APP") != NULL;
}

static void begin(void)
{
    char name[16] = "";
    const char *text = getenv("QBKIT_APP");
    int at = 0;
    uint64_t a = 0, b = 0;
    sscanf(text, "%15s%n", name, &at);
    next_word = text + at;
    kind = !strcmp(name, "onoff") ? ONOFF : !strcmp(name, "requests") ? REQUESTS : OBJECTS;
    if (kind != OBJECTS) sscanf(next_word, "%lu %lu %lu", &a, &b, &seed);
    if (kind == ONOFF) on_ns = a, off_ns = b;
    if (kind == REQUESTS) object_bytes = a, think_ns = b;
    start_ns = clock_ns();
}

static struct due due_object(uint64_t now)
{
    uint64_t at_ns, bytes;
    int length;
    if (!left_bytes) {
        if (sscanf(next_word, " %lu:%lu%n", &at_ns, &bytes, &length) < 2)
            return (struct due){.at_ns = NEVER_NS};
        if (now < start_ns + at_ns) return (struct due){.at_ns = start_ns + at_ns};
        next_word += length;
        left_bytes = bytes;
        released(start_ns + at_ns, bytes);
    }
    return (struct due){.bytes = left_bytes};
}

static struct due due_request(uint64_t now)
{
    if (!left_bytes && asked) return (struct due){.wants_answer = true};
    if (!left_bytes && now < start_ns) return (struct due){.at_ns = start_ns};
    if (!left_bytes) {
        left_bytes = object_bytes;
        asked = true;
        released(now, object_bytes);
    }
    return (struct due){.bytes = left_bytes};
}

static struct due due_on(uint64_t now)
{
    if (off_at_ns && now >= off_at_ns) { /* an on-time ends */
        released(start_ns, sent_in_on);
        start_ns = off_at_ns + drawn(off_ns);
        off_at_ns = sent_in_on = 0;
    }
    if (!off_at_ns && now < start_ns) return (struct due){.at_ns = start_ns};
    if (!off_at_ns) {
        start_ns = now;
        off_at_ns = now + drawn(on_ns);
    }
    return (struct due){.bytes = UINT64_MAX};
}

struct due app_due(void)
{
    if (kind == NONE) begin();
    uint64_t now = clock_ns();
    return kind == OBJECTS ? due_object(now) : kind == ONOFF ? due_on(now) : due_request(now);
}

void app_written(uint64_t bytes)
{
    if (kind == ONOFF) sent_in_on += bytes;
    else left_bytes -= bytes;
}

void app_answered(void)
{
    asked = false;
    start_ns = clock_ns() + drawn(think_ns);
}

/* --- reading --- */

static uint64_t since_ns, since_bytes;

static double bytes_per_ns(void)
{
    const char *mbps = getenv("QBKIT_READ_MBPS");
    return mbps ? atof(mbps) / 8e3 : INFINITY;
}

void reader_took(uint64_t bytes)
{
    static FILE *rows;
    static uint64_t total;
    uint64_t now = clock_ns();
    if (!rows && getenv("QBKIT_APP_OUT")) rows = table("arrived.csv");
    if (rows) fprintf(rows, "%lu,%lu\n", now, total += bytes);
    /* Time in which there was nothing to read is not made up for. */
    if (now > reader_ready_ns() + LATE_NS) since_ns = now, since_bytes = 0;
    since_bytes += bytes;
}

uint64_t reader_ready_ns(void)
{
    return since_ns + (uint64_t)((double)since_bytes / bytes_per_ns());
}
