/* Compares a store with what the host was told. A record's text names it, and determines its text,
 * logger, level and fields, so no invented or torn record passes. After a power cut: what a
 * machine-durable flush covered is there, once, whole and verified; nothing is there twice; nothing
 * incomplete is shown as verified. One thread. */
#include "sim.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ── What a record is ── */

static uint64_t mixed(uint64_t seed, uint64_t thread, uint64_t number) {
    sim_random random = sim_seeded(seed ^ thread << 48 ^ number << 20, 3);
    return sim_next(&random);
}

size_t record_message(uint64_t seed, uint32_t life, uint32_t thread, uint32_t number, char *out) {
    uint64_t mix = mixed(seed, thread, number);
    size_t filler = mix % 64 == 0 ? 1000 + mix / 64 % 5000 : mix / 64 % 400;
    size_t head = (size_t)sprintf(out, "L%u t%u n%u ", life, thread, number);
    for (size_t i = 0; i < filler; i++) out[head + i] = (char)('a' + (i * 7 + mix % 26) % 26);
    out[head + filler] = 0;
    return head + filler;
}

void record_logger(uint64_t seed, uint32_t thread, uint32_t number, char out[32]) {
    /* New names keep appearing. */
    uint64_t name = mixed(seed, thread, number) % LOGGERS + number / 100 * LOGGERS;
    snprintf(out, 32, "sim.%llu", (unsigned long long)name);
}

uint32_t record_level(uint32_t number) { return 9 + number % 4 * 4; }

bool record_has_fields(uint64_t seed, uint32_t thread, uint32_t number) {
    return mixed(seed, thread, number) / 7 % 3 == 0;
}

/* ── Reading ── */

static bool fail(char *why, size_t bytes, const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(why, bytes, format, list);
    va_end(list);
    return false;
}

static bool has_fields(const cw_record_view *view, uint32_t number) {
    if (view->field_count != 2) return false;
    const cw_field *n = &view->fields[0], *who = &view->fields[1];
    char text[32];
    int length = snprintf(text, sizeof text, "who %u", number);
    return n->type == CW_TYPE_INT && n->value.i == (int64_t)number &&
           n->key.length == 1 && n->key.data[0] == 'n' && who->type == CW_TYPE_STRING &&
           who->value.s.length == (size_t)length &&
           !memcmp(who->value.s.data, text, (size_t)length);
}

typedef struct {
    uint32_t life, thread, number;
} place;

/* The record that the text names. */
static bool parse(const cw_record_view *view, const sim_model *model, place *out) {
    char head[64];
    size_t length = view->message.length < 63 ? view->message.length : 63;
    memcpy(head, view->message.data, length);
    head[length] = 0;
    if (sscanf(head, "L%u t%u n%u ", &out->life, &out->thread, &out->number) != 3) return false;
    return out->life < model->lives && out->thread < THREADS_MAX && out->number < RECORDS_MAX;
}

/* NULL: it is whole. */
static const char *compare(const cw_record_view *view, const sim_model *model, const place *at) {
    static char expected[MESSAGE_BYTES];
    const sim_life *life = &model->life[at->life];
    size_t length = record_message(life->seed, at->life, at->thread, at->number, expected);
    if (view->message.length != length || memcmp(view->message.data, expected, length))
        return "its text";
    char name[32];
    record_logger(life->seed, at->thread, at->number, name);
    if (view->logger.length != strlen(name) || memcmp(view->logger.data, name, strlen(name)))
        return "its logger";
    if (view->level != record_level(at->number)) return "its level";
    if (record_has_fields(life->seed, at->thread, at->number) ? !has_fields(view, at->number)
                                                               : view->field_count != 0)
        return "its fields";
    return NULL;
}

/* Whether the attribute `user` is one that the record may have. */
static bool has_user(const cw_record_view *view, const sim_record *record) {
    unsigned user = 0;
    for (uint32_t i = 0; i < view->resource_count; i++) {
        const cw_field *field = &view->resource[i];
        if (field->key.length == 4 && !memcmp(field->key.data, "user", 4))
            for (uint32_t at = 0; at < field->value.s.length; at++)
                user = user * 10 + (unsigned)(field->value.s.data[at] - '0');
    }
    return user >= record->user_least && user <= record->user_most;
}

enum { SLACK_NS = 50000000 };

static bool take(const cw_record_view *view, const sim_model *model, sim_seen *seen,
                 sim_counts *counts, char *why, size_t bytes) {
    bool unverified = view->flags & CW_VIEW_UNVERIFIED;
    if (view->kind != CW_KIND_LOG || (view->logger.length >= 8 &&
                                      !memcmp(view->logger.data, "Cordwood", 8)))
        return true;
    place at;
    const char *bad = "no record of ours";
    bool is_known = parse(view, model, &at);
    if (is_known) bad = compare(view, model, &at);
    if (bad && unverified) return counts->torn++, true;
    if (bad)
        return fail(why, bytes, "shown as whole, but %s is not as written: %.*s (logger %.*s)", bad,
                    (int)(view->message.length < 80 ? view->message.length : 80),
                    view->message.data, (int)view->logger.length, view->logger.data);
    const sim_record *record = &model->life[at.life].records[at.thread][at.number];
    if (record->state == RECORD_NONE || record->state == RECORD_REFUSED)
        return fail(why, bytes, "L%u t%u n%u is there and was %s", at.life, at.thread, at.number,
                    record->state == RECORD_NONE ? "never written" : "refused");
    uint8_t *state = &seen->state[at.life][at.thread][at.number];
    if (*state)
        return fail(why, bytes, "L%u t%u n%u is there twice (%s)", at.life, at.thread, at.number,
                    unverified || *state == 1 ? "once unverified" : "verified");
    if (!unverified && !has_user(view, record))
        return fail(why, bytes, "L%u t%u n%u is verified and another user's, not one of %u to %u",
                    at.life, at.thread, at.number, record->user_least, record->user_most);
    *state = unverified ? 1 : 2;
    unverified ? counts->unverified++ : counts->verified++;
    uint64_t after = record->state == RECORD_KEPT ? record->after_ns : UINT64_MAX - SLACK_NS;
    if (!unverified && (view->time_ns + SLACK_NS < record->before_ns ||
                        view->time_ns > after + SLACK_NS))
        return fail(why, bytes, "L%u t%u n%u is verified and its time is %lld ms off", at.life,
                    at.thread, at.number,
                    (long long)((int64_t)(view->time_ns - record->before_ns) / 1000000));
    return true;
}

static bool read_all(const char *store, const sim_model *model, sim_seen *seen, sim_counts *counts,
                     char *why, size_t bytes) {
    cw_reader *reader;
    cw_status status = cw_reader_open(store, NULL, &reader);
    if (status == CW_E_NOT_FOUND) return true;
    if (status != CW_OK)
        return fail(why, bytes, "cw_reader_open: %s", cw_status_name(status));
    bool good = true;
    for (uint64_t failures = 0; good;) {
        cw_record_view view = {.struct_size = sizeof view};
        status = cw_reader_next(reader, &view);
        if (status == CW_END) break;
        if (status == CW_E_DAMAGED) {
            counts->damaged++;
            if (++failures < 100000) continue;
        }
        if (status != CW_OK) {
            char text[256];
            cw_last_error(text, sizeof text);
            good = fail(why, bytes, "cw_reader_next: %s: %s", cw_status_name(status), text);
        } else {
            good = take(&view, model, seen, counts, why, bytes);
        }
    }
    cw_reader_close(&reader);
    return good;
}

/* Checks for every required record. `at`: the time of the cut, an event of the last life. */
static bool find_missing(const sim_model *model, uint64_t at, const sim_seen *seen,
                         sim_counts *counts, char *why, size_t bytes) {
    for (uint32_t l = 0; l < model->lives; l++) {
        const sim_life *life = &model->life[l];
        for (uint32_t t = 0; t < life->threads; t++) {
            for (uint32_t n = 0; n < RECORDS_MAX; n++) {
                const sim_record *record = &life->records[t][n];
                uint8_t state = seen->state[l][t][n];
                bool removed = record->removed &&
                               (record->removed_life + 1u < model->lives || record->removed < at);
                if (removed && state) counts->resurrected++;
                if (n >= life->required[t] || record->state != RECORD_KEPT || removed) continue;
                if (state != 2)
                    return fail(why, bytes, "L%u t%u n%u was flushed to the machine and is %s", l,
                                t, n, state ? "unverified" : "not there");
            }
        }
    }
    return true;
}

bool judge_read(const char *store, const sim_model *model, uint64_t at, sim_seen *seen,
                sim_counts *counts, char *why, size_t bytes) {
    static sim_seen now;
    memset(&now, 0, sizeof now);
    if (!read_all(store, model, &now, counts, why, bytes)) return false;
    if (!find_missing(model, at, &now, counts, why, bytes)) return false;
    if (!seen) return true;
    const uint8_t *before = &seen->state[0][0][0], *after = &now.state[0][0][0];
    for (size_t i = 0; i < sizeof now.state; i++)
        if (before[i] && after[i] < before[i])
            return fail(why, bytes, "L%zu t%zu n%zu was %s before the recovery and is %s after it",
                        i / (THREADS_MAX * RECORDS_MAX), i / RECORDS_MAX % THREADS_MAX,
                        i % RECORDS_MAX, before[i] == 2 ? "verified" : "there",
                        after[i] ? "not verified" : "gone");
    *seen = now;
    return true;
}

/* ── Archives that left the disk ── */

void judge_removed(const char *keep, sim_model *model, const sim_trace *trace) {
    if (!model->life[model->lives - 1].may_remove) return;
    for (uint64_t i = trace->start; i < trace->count; i++) {
        if (trace->events[i].kind != EVENT_ARCHIVE_GONE) continue;
        char path[PATH_BYTES];
        snprintf(path, sizeof path, "%s/%llu.cwa", keep,
                 (unsigned long long)trace->events[i].value);
        cw_reader *reader;
        if (cw_reader_open(path, NULL, &reader) != CW_OK) continue;
        for (;;) {
            cw_record_view view = {.struct_size = sizeof view};
            cw_status status = cw_reader_next(reader, &view);
            if (status != CW_OK && status != CW_E_DAMAGED) break;
            place at;
            if (status != CW_OK || !parse(&view, model, &at)) continue;
            sim_record *record = &model->life[at.life].records[at.thread][at.number];
            if (record->removed) continue;
            record->removed = i;
            record->removed_life = (uint8_t)(model->lives - 1);
        }
        cw_reader_close(&reader);
    }
}
