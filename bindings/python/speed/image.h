/* What a record owns of a cw_record_view: one block of bytes without pointers, made without the GIL
 * and without touching a Python object. Included by speed.c.
 */
#ifndef CORDWOOD_PYTHON_IMAGE_H
#define CORDWOOD_PYTHON_IMAGE_H

#include "speed.h"

/* In the order of their bytes behind the fields of an image. */
enum { TEXT_LOGGER, TEXT_PROCESS, TEXT_FILE, TEXT_FUNCTION, TEXT_MESSAGE, TEXTS };

/* A cw_record_view on its own: this, its fields, the texts, then key and value of each field. */
typedef struct {
    uint64_t time_ns;
    uint64_t thread_id;
    uint64_t sequence;
    uint64_t original_length;
    uint32_t level;
    uint32_t process_id;
    uint32_t line;
    uint32_t kind;
    uint32_t flags;
    uint32_t trace_flags;
    uint8_t trace_id[16];
    uint8_t span_id[8];
    uint8_t record_id[24];
    size_t texts[TEXTS]; /* lengths */
    size_t fields;
} Image;

typedef struct {
    size_t key; /* length */
    uint32_t type;
    union {
        int64_t i;
        uint64_t u;
        double d;
        bool b;
        size_t length; /* of a text */
    } value;
} ImageField;

static bool
has_text(uint32_t type)
{
    return type < CW_TYPE_INT || type > CW_TYPE_BOOL;
}

static char *
put_text(char *at, cw_str text)
{
    if (text.length > 0)
        memcpy(at, text.data, text.length);
    return at + text.length;
}

/* The bytes that put_fields needs for fields and their texts. */
static size_t
fields_bytes(const cw_field *fields, size_t count)
{
    size_t bytes = count * sizeof(ImageField);
    for (size_t i = 0; i < count; i++)
        bytes += fields[i].key.length + (has_text(fields[i].type) ? fields[i].value.s.length : 0);
    return bytes;
}

static char *
put_fields(ImageField *out, char *at, const cw_field *fields, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const cw_field *field = &fields[i];
        out[i].key = field->key.length;
        out[i].type = field->type;
        at = put_text(at, field->key);
        switch (field->type) {
        case CW_TYPE_INT: out[i].value.i = field->value.i; break;
        case CW_TYPE_UINT: out[i].value.u = field->value.u; break;
        case CW_TYPE_DOUBLE: out[i].value.d = field->value.d; break;
        case CW_TYPE_BOOL: out[i].value.b = field->value.b; break;
        default:
            out[i].value.length = field->value.s.length;
            at = put_text(at, field->value.s);
        }
    }
    return at;
}

static void
image_texts(const cw_record_view *view, cw_str out[TEXTS])
{
    out[TEXT_LOGGER] = view->logger;
    out[TEXT_PROCESS] = view->process_name;
    out[TEXT_FILE] = view->file;
    out[TEXT_FUNCTION] = view->function;
    out[TEXT_MESSAGE] = view->message;
}

static size_t
image_bytes(const cw_record_view *view)
{
    return sizeof(Image) + fields_bytes(view->fields, view->field_count) + view->logger.length
           + view->process_name.length + view->file.length + view->function.length
           + view->message.length;
}

/* Copies the view into image_bytes() bytes at `out`. Without the GIL. */
static void
image_of(const cw_record_view *view, Image *out)
{
    cw_str texts[TEXTS];
    image_texts(view, texts);
    out->time_ns = view->time_ns;
    out->thread_id = view->thread_id;
    out->sequence = view->sequence;
    out->original_length = view->original_length;
    out->level = view->level;
    out->process_id = view->process_id;
    out->line = view->line;
    out->kind = view->kind;
    out->flags = view->flags;
    out->trace_flags = view->trace_flags;
    memcpy(out->trace_id, view->trace_id, sizeof out->trace_id);
    memcpy(out->span_id, view->span_id, sizeof out->span_id);
    memcpy(out->record_id, view->record_id, sizeof out->record_id);
    out->fields = view->field_count;
    ImageField *fields = (ImageField *)(out + 1);
    char *at = (char *)(fields + view->field_count);
    for (int i = 0; i < TEXTS; i++) {
        out->texts[i] = texts[i].length;
        at = put_text(at, texts[i]);
    }
    put_fields(fields, at, view->fields, view->field_count);
}

#endif
