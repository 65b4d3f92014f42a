#include "flow.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { SAMPLE_NS = 10 * 1000 * 1000, ROW_NS = 100 * 1000 * 1000, BUFFER_BYTES = 1 << 20 };

static FILE *rows;
static const char *table;
static uint64_t next_ns, total_bytes, header_left = HEADER_BYTES;

/* A large buffer: each write costs the guest microseconds. */
static void open_table(const char *name, const char *header)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", flow.out, name);
    if (!(rows = fopen(path, "we"))) fail("cannot write %s: %s", path, strerror(errno));
    setvbuf(rows, NULL, _IOFBF, BUFFER_BYTES);
    fputs(header, rows);
    table = name;
}

void open_samples(void)
{
    open_table("sender.csv",
               "time_ns,cwnd_bytes,bytes_in_flight,ssthresh_bytes,srtt_ms,latest_rtt_ms,min_rtt_ms,"
               "pacing_rate_mbps,delivery_rate_mbps,lost_packets,spurious_losses,state\n");
}

bool sample_due(void)
{
    return now_ns() >= next_ns;
}

static void cell(double value, int decimals)
{
    fputc(',', rows);
    if (!isnan(value)) fprintf(rows, "%.*f", decimals, value);
}

void write_sample(const struct sample *s)
{
    uint64_t now = now_ns();
    next_ns = now + SAMPLE_NS;
    fprintf(rows, "%lu", now);
    cell(s->cwnd_bytes, 0), cell(s->bytes_in_flight, 0), cell(s->ssthresh_bytes, 0);
    cell(s->srtt_ms, 3), cell(s->latest_rtt_ms, 3), cell(s->min_rtt_ms, 3);
    cell(s->pacing_rate_mbps, 3), cell(s->delivery_rate_mbps, 3);
    cell(s->lost_packets, 0), cell(s->spurious_losses, 0);
    fprintf(rows, ",%s\n", s->state ? s->state : "");
}

void open_counter(void)
{
    open_table("receiver.csv", "time_ns,bytes\n");
}

static void write_count(uint64_t now)
{
    fprintf(rows, "%lu,%lu\n", now, total_bytes);
    next_ns = now + ROW_NS;
}

void count_bytes(size_t bytes)
{
    uint64_t skipped = bytes < header_left ? bytes : header_left, now = now_ns();
    header_left -= skipped;
    total_bytes += bytes - skipped;
    if (now >= next_ns) write_count(now);
}

void close_table(void)
{
    if (!flow.sends) write_count(now_ns());
    if (ferror(rows) | fclose(rows)) fail("cannot write %s: %s", table, strerror(errno));
}
