/* What is above the transport: when a sender has data, and how fast a receiver reads.
 *
 * The environment variables are in qbkit/stacks/base.py, the applications in qbkit/spec/app.py:
 *
 *   objects NS:BYTES NS:BYTES ...   each at its time after the start of the flow
 *   onoff ON_NS OFF_NS SEED         as much as it can while it is on; means, if SEED is not 0
 *   requests BYTES THINK_NS SEED    the next object so long after the last one was acknowledged
 */
#ifndef ABOVE_H
#define ABOVE_H

#include <stdbool.h>
#include <stdint.h>

#define NEVER_NS UINT64_MAX

/* What an application wants next: to write so many bytes; if none, the answer to its request, or
 * nothing before this time. */
struct due {
    uint64_t bytes, at_ns;
    bool wants_answer;
};

/* Whether the sender has an application. */
bool app_given(void);
/* The first call begins it. A row of objects.csv when an object is released, or an on-time ends. */
struct due app_due(void);
void app_written(uint64_t bytes);
/* The receiver has answered, or acknowledged, a request. */
void app_answered(void);

/* So many more bytes were read: a row of arrived.csv, where the sender has an application. */
void reader_took(uint64_t bytes);
/* When the reader reads again; 0: at once. */
uint64_t reader_ready_ns(void);

#endif
