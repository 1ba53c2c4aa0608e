/* cordwood.Record in C: one block holds a copy of what the reader showed; attributes are made when
 * they are asked for. Whatever needs all of them (comparing, unpacking, repr, pickling) makes the
 * named tuple of _record_view.py and leaves the rest to it. Included by speed.c; the GIL is held.
 *
 * fields, resource and the tuple are kept once made, for a host may change the dicts. From then on
 * the garbage collector sees the record.
 */
#ifndef CORDWOOD_PYTHON_RECORDS_H
#define CORDWOOD_PYTHON_RECORDS_H

#include "image.h"
#include "speed.h"

typedef struct {
    PyObject_VAR_HEAD
    PyObject *origin;   /* bytes: the number of attributes, then put_fields'; or NULL */
    PyObject *fields;   /* made when asked for, or NULL, as the two below */
    PyObject *resource;
    PyObject *whole;    /* the tuple of all */
    Image image;        /* followed by its text; absent if the host made the record from values */
} Record;

/* The members of the tuple, by their place in it. */
enum {
    AT_TIME_NS, AT_LEVEL_NUMBER, AT_LOGGER, AT_MESSAGE, AT_PID, AT_TID, AT_FILE, AT_LINE,
    AT_FUNCTION, AT_FIELDS, AT_TRACE_ID, AT_SPAN_ID, AT_TRACE_FLAGS, AT_KIND, AT_SEQUENCE,
    AT_PROCESS_NAME, AT_MESSAGE_BYTES, AT_ORIGINAL_LENGTH, AT_FLAGS, AT_RESOURCE, AT_RECORD_ID,
    MEMBERS,
};

static State *
record_state(Record *self)
{
    return PyType_GetModuleState(Py_TYPE(self));
}

/* Text as str; what is not UTF-8 becomes U+FFFD. Short ASCII ones, names for the most part, are
 * remembered: the next record has the same. */
static PyObject *
shown(State *state, const char *data, size_t length)
{
    if (length == 0 || length > NAME_MAX_BYTES)
        return PyUnicode_DecodeUTF8(data, (Py_ssize_t)length, "replace");
    uint32_t mixed = (uint32_t)length;
    for (size_t i = 0; i < length; i += 1 + length / 8)
        mixed = mixed * 31 + (unsigned char)data[i];
    PyObject **known = &state->names[(mixed * 0x9E3779B1u) >> 24]; /* 8 bits: NAMES */
    if (*known != NULL && (size_t)PyUnicode_GET_LENGTH(*known) == length
        && memcmp(PyUnicode_1BYTE_DATA(*known), data, length) == 0) {
        Py_INCREF(*known);
        return *known;
    }
    PyObject *text = PyUnicode_DecodeUTF8(data, (Py_ssize_t)length, "replace");
    if (text != NULL && PyUnicode_IS_COMPACT_ASCII(text)) {
        Py_INCREF(text);
        Py_XSETREF(*known, text);
    }
    return text;
}

static const char *
text_of(const Record *self, int which, size_t *length)
{
    const Image *image = &self->image;
    const char *at = (const char *)((const ImageField *)(image + 1) + image->fields);
    for (int i = 0; i < which; i++)
        at += image->texts[i];
    *length = image->texts[which];
    return at;
}

static PyObject *
shown_text(Record *self, int which)
{
    size_t length;
    const char *data = text_of(self, which, &length);
    if (which == TEXT_MESSAGE) /* seldom the same twice */
        return PyUnicode_DecodeUTF8(data, (Py_ssize_t)length, "replace");
    return shown(record_state(self), data, length);
}

static PyObject *
json_of(State *state, const char *text, size_t length)
{
    PyObject *content = PyUnicode_DecodeUTF8(text, (Py_ssize_t)length, "replace");
    PyObject *value = content == NULL ? NULL
                      : PyObject_CallFunctionObjArgs(state->json_value, content, NULL);
    Py_XDECREF(content);
    return value;
}

static PyObject *
value_of(State *state, const ImageField *field, const char *text)
{
    switch (field->type) {
    case CW_TYPE_INT: return PyLong_FromLongLong(field->value.i);
    case CW_TYPE_UINT: return PyLong_FromUnsignedLongLong(field->value.u);
    case CW_TYPE_DOUBLE: return PyFloat_FromDouble(field->value.d);
    case CW_TYPE_BOOL: return PyBool_FromLong(field->value.b);
    case CW_TYPE_JSON: return json_of(state, text, field->value.length);
    default: return shown(state, text, field->value.length);
    }
}

/* The dict of fields whose texts begin at `at`: the first field of a key counts. */
static PyObject *
dict_of(State *state, const ImageField *fields, size_t count, const char *at)
{
    PyObject *found = PyDict_New();
    for (size_t i = 0; i < count && found != NULL; i++) {
        const char *text = at + fields[i].key;
        PyObject *key = shown(state, at, fields[i].key);
        PyObject *value = key == NULL ? NULL : value_of(state, &fields[i], text);
        if (value == NULL || PyDict_SetDefault(found, key, value) == NULL)
            Py_CLEAR(found);
        Py_XDECREF(key);
        Py_XDECREF(value);
        at = text + (has_text(fields[i].type) ? fields[i].value.length : 0);
    }
    return found;
}

static PyObject *
remember(Record *self, PyObject **slot, PyObject *made)
{
    if (made == NULL)
        return NULL;
    *slot = made;
    if (!PyObject_GC_IsTracked((PyObject *)self))
        PyObject_GC_Track(self);
    Py_INCREF(made);
    return made;
}

static PyObject *
fields_of(Record *self)
{
    const Image *image = &self->image;
    size_t length;
    if (self->fields != NULL) {
        Py_INCREF(self->fields);
        return self->fields;
    }
    const char *message = text_of(self, TEXT_MESSAGE, &length);
    return remember(self, &self->fields,
                    dict_of(record_state(self), (const ImageField *)(image + 1), image->fields,
                            message + length));
}

static PyObject *
resource_of(Record *self)
{
    if (self->resource != NULL) {
        Py_INCREF(self->resource);
        return self->resource;
    }
    size_t count;
    const char *packed = PyBytes_AS_STRING(self->origin);
    memcpy(&count, packed, sizeof count);
    const ImageField *fields = (const ImageField *)(packed + sizeof count);
    return remember(self, &self->resource,
                    dict_of(record_state(self), fields, count, (const char *)(fields + count)));
}

/* Hex digits of bytes, or None where all are zero and may be. */
static PyObject *
hex_of(const uint8_t *bytes, size_t count, bool may_lack)
{
    static const char digits[] = "0123456789abcdef";
    char text[2 * 24];
    uint8_t any = 0;
    for (size_t i = 0; i < count; i++) {
        any |= bytes[i];
        text[2 * i] = digits[bytes[i] >> 4];
        text[2 * i + 1] = digits[bytes[i] & 15];
    }
    if (may_lack && any == 0)
        Py_RETURN_NONE;
    return PyUnicode_FromKindAndData(PyUnicode_1BYTE_KIND, text, (Py_ssize_t)(2 * count));
}

static PyObject *
kind_of(Record *self)
{
    static const char *const names[] = {"log", "gap", "lifecycle", "transaction", "http"};
    uint32_t kind = self->image.kind;
    if (kind >= sizeof names / sizeof *names)
        return PyUnicode_FromFormat("%u", kind);
    return shown(record_state(self), names[kind], strlen(names[kind]));
}

/* A text, or None where it is empty. */
static PyObject *
text_or_none(Record *self, int which)
{
    if (self->image.texts[which] == 0)
        Py_RETURN_NONE;
    return shown_text(self, which);
}

static PyObject *
bytes_of(Record *self)
{
    size_t length;
    const char *data = text_of(self, TEXT_MESSAGE, &length);
    return PyBytes_FromStringAndSize(data, (Py_ssize_t)length);
}

/* A member, made now. */
static PyObject *
member_of(Record *self, int which)
{
    const Image *image = &self->image;
    switch (which) {
    case AT_TIME_NS: return PyLong_FromUnsignedLongLong(image->time_ns);
    case AT_LEVEL_NUMBER: return PyLong_FromUnsignedLong(image->level);
    case AT_LOGGER: return shown_text(self, TEXT_LOGGER);
    case AT_MESSAGE: return shown_text(self, TEXT_MESSAGE);
    case AT_PID: return PyLong_FromUnsignedLong(image->process_id);
    case AT_TID: return PyLong_FromUnsignedLongLong(image->thread_id);
    case AT_FILE: return text_or_none(self, TEXT_FILE);
    case AT_LINE:
        if (image->line == 0)
            Py_RETURN_NONE;
        return PyLong_FromUnsignedLong(image->line);
    case AT_FUNCTION: return text_or_none(self, TEXT_FUNCTION);
    case AT_FIELDS: return fields_of(self);
    case AT_TRACE_ID: return hex_of(image->trace_id, sizeof image->trace_id, true);
    case AT_SPAN_ID: return hex_of(image->span_id, sizeof image->span_id, true);
    case AT_TRACE_FLAGS: return PyLong_FromUnsignedLong(image->trace_flags);
    case AT_KIND: return kind_of(self);
    case AT_SEQUENCE: return PyLong_FromUnsignedLongLong(image->sequence);
    case AT_PROCESS_NAME: return shown_text(self, TEXT_PROCESS);
    case AT_MESSAGE_BYTES: return bytes_of(self);
    case AT_ORIGINAL_LENGTH: return PyLong_FromUnsignedLongLong(image->original_length);
    case AT_FLAGS: return PyLong_FromUnsignedLong(image->flags);
    case AT_RESOURCE: return resource_of(self);
    default: return hex_of(image->record_id, sizeof image->record_id, false);
    }
}

static PyObject *
record_member(PyObject *object, void *which)
{
    Record *self = (Record *)object;
    if (self->whole == NULL)
        return member_of(self, (int)(intptr_t)which);
    PyObject *member = PyTuple_GET_ITEM(self->whole, (Py_ssize_t)(intptr_t)which);
    Py_INCREF(member);
    return member;
}

/* The tuple of all, borrowed. */
static PyObject *
whole_of(Record *self)
{
    if (self->whole != NULL)
        return self->whole;
    PyObject *members = PyTuple_New(MEMBERS);
    for (int i = 0; i < MEMBERS && members != NULL; i++) {
        PyObject *member = member_of(self, i);
        if (member == NULL)
            Py_CLEAR(members);
        else
            PyTuple_SET_ITEM(members, i, member);
    }
    if (members == NULL)
        return NULL;
    PyObject *maker = record_state(self)->plain_record;
    PyObject *made = maker == NULL ? NULL : PyObject_Call(maker, members, NULL);
    if (maker == NULL)
        PyErr_SetString(PyExc_RuntimeError, "the interpreter is ending");
    Py_DECREF(members);
    PyObject *whole = remember(self, &self->whole, made);
    Py_XDECREF(whole); /* the record has it */
    return whole;
}

static PyObject *
record_whole(PyObject *self, void *Py_UNUSED(closure))
{
    PyObject *whole = whole_of((Record *)self);
    Py_XINCREF(whole);
    return whole;
}

/* "INFO+2": _levels.name, asked once for each number. */
static PyObject *
record_level(PyObject *self, void *Py_UNUSED(closure))
{
    State *state = record_state((Record *)self);
    PyObject *number = record_member(self, (void *)AT_LEVEL_NUMBER);
    if (number == NULL)
        return NULL;
    int overflow;
    long level = PyLong_Check(number) ? PyLong_AsLongAndOverflow(number, &overflow) : -1;
    PyObject **known = level >= 0 && level < LEVELS ? &state->levels[level] : NULL;
    PyObject *name = known == NULL ? NULL : *known;
    Py_XINCREF(name);
    if (name == NULL)
        name = PyObject_CallFunctionObjArgs(state->level_name, number, NULL);
    Py_DECREF(number);
    if (known != NULL && *known == NULL && name != NULL) {
        Py_INCREF(name);
        *known = name;
    }
    return name;
}

/* The day of a number of days since 1970, in the Gregorian calendar (H. Hinnant's algorithm). */
static void
day_of(uint64_t days, int *year, int *month, int *day)
{
    uint64_t shifted = days + 719468, era = shifted / 146097, of_era = shifted % 146097;
    uint64_t years = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    uint64_t of_year = of_era - (365 * years + years / 4 - years / 100);
    uint64_t part = (5 * of_year + 2) / 153;
    *day = (int)(of_year - (153 * part + 2) / 5 + 1);
    *month = (int)(part < 10 ? part + 3 : part - 9);
    *year = (int)(years + era * 400 + (*month <= 2));
}

/* datetime, aware, UTC. */
static PyObject *
record_time(PyObject *object, void *Py_UNUSED(closure))
{
    Record *self = (Record *)object;
    PyDateTime_CAPI *dates = record_state(self)->dates;
    uint64_t time_ns = self->image.time_ns;
    if (self->whole != NULL) {
        time_ns = PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(self->whole, AT_TIME_NS));
        if (PyErr_Occurred())
            return NULL;
    }
    uint64_t seconds = time_ns / 1000000000, of_day = seconds % 86400;
    int year, month, day;
    day_of(seconds / 86400, &year, &month, &day);
    return dates->DateTime_FromDateAndTime(
        year, month, day, (int)(of_day / 3600), (int)(of_day / 60 % 60), (int)(of_day % 60),
        (int)(time_ns / 1000 % 1000000), dates->TimeZone_UTC, dates->DateTimeType);
}

/* Record(*values, **values): what the named tuple takes. */
static PyObject *
record_new(PyTypeObject *type, PyObject *args, PyObject *names)
{
    State *state = PyType_GetModuleState(type);
    if (state == NULL || state->plain_record == NULL) {
        PyErr_SetString(PyExc_TypeError, "no library is bound");
        return NULL;
    }
    PyObject *whole = PyObject_Call(state->plain_record, args, names);
    if (whole == NULL)
        return NULL;
    Record *self = PyObject_GC_NewVar(Record, type, 0);
    if (self == NULL) {
        Py_DECREF(whole);
        return NULL;
    }
    memset(&self->origin, 0, sizeof *self - offsetof(Record, origin));
    self->whole = whole;
    PyObject_GC_Track(self);
    return (PyObject *)self;
}

static PyObject *
new_record(State *state, const Image *image, size_t bytes, PyObject *origin)
{
    Record *self = PyObject_GC_NewVar(Record, state->record_type,
                                      (Py_ssize_t)(bytes - sizeof(Image)));
    if (self == NULL)
        return NULL;
    Py_INCREF(origin);
    self->origin = origin;
    self->fields = self->resource = self->whole = NULL;
    memcpy(&self->image, image, bytes);
    return (PyObject *)self;
}

static int
record_traverse(PyObject *object, visitproc visit, void *arg)
{
    Record *self = (Record *)object;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->fields);
    Py_VISIT(self->resource);
    Py_VISIT(self->whole);
    return 0;
}

static void
record_free(PyObject *object)
{
    Record *self = (Record *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    Py_XDECREF(self->origin);
    Py_XDECREF(self->fields);
    Py_XDECREF(self->resource);
    Py_XDECREF(self->whole);
    PyObject_GC_Del(object);
    Py_DECREF(type);
}

static PyObject *
record_repr(PyObject *self)
{
    PyObject *whole = whole_of((Record *)self);
    return whole == NULL ? NULL : PyObject_Repr(whole);
}

static PyObject *
record_compare(PyObject *self, PyObject *other, int operation)
{
    PyObject *first = whole_of((Record *)self);
    if (first != NULL && Py_TYPE(other) == Py_TYPE(self))
        other = whole_of((Record *)other);
    return first == NULL || other == NULL ? NULL : PyObject_RichCompare(first, other, operation);
}

static PyObject *
record_iterator(PyObject *self)
{
    PyObject *whole = whole_of((Record *)self);
    return whole == NULL ? NULL : PyObject_GetIter(whole);
}

static Py_ssize_t
record_length(PyObject *Py_UNUSED(self))
{
    return MEMBERS;
}

static PyObject *
record_at(PyObject *self, PyObject *key)
{
    PyObject *whole = whole_of((Record *)self);
    return whole == NULL ? NULL : PyObject_GetItem(whole, key);
}

static PyObject *
record_item(PyObject *self, Py_ssize_t at)
{
    PyObject *whole = whole_of((Record *)self);
    return whole == NULL ? NULL : PySequence_GetItem(whole, at);
}

static PyObject *
record_concat(PyObject *self, PyObject *other)
{
    PyObject *whole = whole_of((Record *)self);
    return whole == NULL ? NULL : PySequence_Concat(whole, other);
}

static PyObject *
record_reduce(PyObject *self, PyObject *Py_UNUSED(unused))
{
    PyObject *whole = whole_of((Record *)self);
    PyObject *values = whole == NULL ? NULL : PyTuple_GetSlice(whole, 0, MEMBERS);
    return values == NULL ? NULL : Py_BuildValue("(ON)", (PyObject *)Py_TYPE(self), values);
}

static PyMethodDef record_methods[] = {
    {"__reduce__", record_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

#define MEMBER(name, which) {name, record_member, NULL, NULL, (void *)which}

static PyGetSetDef record_members[] = {
    MEMBER("time_ns", AT_TIME_NS), MEMBER("level_number", AT_LEVEL_NUMBER),
    MEMBER("logger", AT_LOGGER), MEMBER("message", AT_MESSAGE), MEMBER("pid", AT_PID),
    MEMBER("tid", AT_TID), MEMBER("file", AT_FILE), MEMBER("line", AT_LINE),
    MEMBER("function", AT_FUNCTION), MEMBER("fields", AT_FIELDS),
    MEMBER("trace_id", AT_TRACE_ID), MEMBER("span_id", AT_SPAN_ID),
    MEMBER("trace_flags", AT_TRACE_FLAGS), MEMBER("kind", AT_KIND),
    MEMBER("sequence", AT_SEQUENCE), MEMBER("process_name", AT_PROCESS_NAME),
    MEMBER("message_bytes", AT_MESSAGE_BYTES), MEMBER("original_length", AT_ORIGINAL_LENGTH),
    MEMBER("flags", AT_FLAGS), MEMBER("resource", AT_RESOURCE),
    MEMBER("record_id", AT_RECORD_ID),
    {"level", record_level, NULL, "\"INFO\", \"INFO+2\".", NULL},
    {"time", record_time, NULL, "Aware, UTC; microseconds: time_ns has the rest.", NULL},
    {"_whole", record_whole, NULL, "The named tuple of all members.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot record_slots[] = {
    {Py_tp_doc, "One record that was read."},
    {Py_tp_new, record_new},
    {Py_tp_dealloc, record_free},
    {Py_tp_traverse, record_traverse},
    {Py_tp_repr, record_repr},
    {Py_tp_hash, PyObject_HashNotImplemented},
    {Py_tp_richcompare, record_compare},
    {Py_tp_iter, record_iterator},
    {Py_tp_methods, record_methods},
    {Py_tp_getset, record_members},
    {Py_sq_length, record_length},
    {Py_sq_item, record_item},
    {Py_sq_concat, record_concat},
    {Py_mp_length, record_length},
    {Py_mp_subscript, record_at},
    {0, NULL},
};

static PyType_Spec record_spec = {
    .name = "cordwood.Record",
    .basicsize = sizeof(Record),
    .itemsize = 1,
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC
#ifdef Py_TPFLAGS_SEQUENCE
             | Py_TPFLAGS_SEQUENCE
#endif
    ,
    .slots = record_slots,
};

#endif
