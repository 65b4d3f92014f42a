#include "flow.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOST_CONNECTION = 3 /* exit status, see docs/howto/own-stack.md */ };

/* Write a JSON string. */
static void quote(FILE *file, const char *text, size_t length)
{
    fputc('"', file);
    for (; text && length && *text; text++, length--) {
        if (*text == '"' || *text == '\\') fprintf(file, "\\%c", *text);
        else if ((unsigned char)*text < ' ') fprintf(file, "\\u%04x", (unsigned)*text);
        else fputc(*text, file);
    }
    fputc('"', file);
}

struct end closed_by(bool peer, bool application, uint64_t code)
{
    return (struct end){.by = flow.sends != peer ? "sender" : "receiver",
                        .kind = application ? "application" : "transport",
                        .code = code};
}

void report_end(const struct end *end)
{
    static bool reported;
    bool done = !flow.sends && !strcmp(end->by, "sender") && !end->code;
    char path[4096];
    snprintf(path, sizeof path, "%s/%s-end.json", flow.out, flow.sends ? "sender" : "receiver");
    if (reported || done) return;
    FILE *file = fopen(path, "w");
    if (!file) fail("cannot write %s: %s", path, strerror(errno));
    fprintf(file, "{\"time_ns\":%lu,\"by\":\"%s\",", now_ns(), end->by);
    if (end->kind) fprintf(file, "\"kind\":\"%s\",\"code\":%lu,", end->kind, end->code);
    fputs("\"reason\":", file);
    quote(file, end->reason, end->reason_length);
    fputs("}\n", file);
    if (ferror(file) | fclose(file)) fail("cannot write %s: %s", path, strerror(errno));
    reported = true;
}

void leave(const struct end *end)
{
    report_end(end);
    close_table();
    exit(LOST_CONNECTION);
}
