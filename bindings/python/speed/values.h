/* From Python's objects to what a record points at: message, fields, exception, trace ids. What is
 * not an exact str, bytes, int, float or bool is left to cordwood._text, so that the accelerator
 * writes the bytes that the way through ctypes writes. Included by speed.c; the GIL is held.
 */
#ifndef CORDWOOD_PYTHON_VALUES_H
#define CORDWOOD_PYTHON_VALUES_H

#include "speed.h"

/* The UTF-8 of a str; the memory is the str's own, or kept. */
static int
put_string(Draft *draft, PyObject *string, cw_str *out)
{
    if (PyUnicode_IS_COMPACT_ASCII(string)) {
        out->data = (const char *)PyUnicode_1BYTE_DATA(string);
        out->length = (size_t)PyUnicode_GET_LENGTH(string);
        return 0;
    }
    if (PyUnicode_GetLength(string) <= CACHED_MAX) {
        Py_ssize_t length;
        out->data = PyUnicode_AsUTF8AndSize(string, &length);
        out->length = (size_t)length;
        if (out->data != NULL)
            return 0;
        PyErr_Clear(); /* surrogates */
    }
    PyObject *bytes = PyObject_CallFunctionObjArgs(draft->state->encode, string, NULL);
    if (keep(draft, bytes) < 0)
        return -1;
    if (!PyBytes_Check(bytes)) {
        PyErr_SetString(PyExc_TypeError, "encode gives bytes");
        return -1;
    }
    out->data = PyBytes_AS_STRING(bytes);
    out->length = (size_t)PyBytes_GET_SIZE(bytes);
    return 0;
}

static int
put_bytes(PyObject *bytes, cw_str *out)
{
    if (!PyBytes_Check(bytes)) {
        PyErr_SetString(PyExc_TypeError, "bytes were expected");
        return -1;
    }
    out->data = PyBytes_AS_STRING(bytes);
    out->length = (size_t)PyBytes_GET_SIZE(bytes);
    return 0;
}

static bool
same_key(PyObject *first, PyObject *second)
{
    if (first == second)
        return true;
    if (!PyUnicode_Check(first) || !PyUnicode_Check(second))
        return false;
    /* Names in a program are interned, and two such names are one object if they are the same. */
    if (PyUnicode_CHECK_INTERNED(first) && PyUnicode_CHECK_INTERNED(second))
        return false;
    return PyUnicode_GetLength(first) == PyUnicode_GetLength(second)
           && PyUnicode_Compare(first, second) == 0;
}

/* The same where `known` is interned, as the names in a program are. */
static inline bool
is_named(PyObject *name, PyObject *known)
{
    return name == known
           || (!(PyUnicode_Check(name) && PyUnicode_CHECK_INTERNED(name))
               && same_key(name, known));
}

/* The number of a value within 64 bits. False: it is larger. */
static bool
put_int(cw_field *field, PyObject *value)
{
    int overflow;
    long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow == 0) {
        field->type = CW_TYPE_INT;
        field->value.i = number;
        return true;
    }
    if (overflow > 0) {
        field->value.u = PyLong_AsUnsignedLongLong(value);
        field->type = CW_TYPE_UINT;
        if (field->value.u != (unsigned long long)-1 || !PyErr_Occurred())
            return true;
        PyErr_Clear();
    }
    return false;
}

/* 1: it was one of the plain types; 0: it was not, or does not fit; -1: an error. */
static int
put_plain(Draft *draft, cw_field *field, PyObject *value)
{
    if (PyUnicode_CheckExact(value)) {
        field->type = CW_TYPE_STRING;
        return put_string(draft, value, &field->value.s) < 0 ? -1 : 1;
    }
    if (PyLong_CheckExact(value))
        return put_int(field, value);
    if (PyFloat_CheckExact(value)) {
        field->type = CW_TYPE_DOUBLE;
        field->value.d = PyFloat_AS_DOUBLE(value);
        return 1;
    }
    if (PyBool_Check(value)) {
        field->type = CW_TYPE_BOOL;
        field->value.b = value == Py_True;
        return 1;
    }
    if (PyBytes_CheckExact(value)) {
        field->type = CW_TYPE_STRING;
        return put_bytes(value, &field->value.s) < 0 ? -1 : 1;
    }
    if ((PyObject *)Py_TYPE(value) == draft->state->json_bytes) {
        field->type = CW_TYPE_JSON;
        return put_bytes(value, &field->value.s) < 0 ? -1 : 1;
    }
    return 0;
}

static int
put_field(Draft *draft, PyObject *key, PyObject *value)
{
    cw_record *record = &draft->record;
    if (record->field_count == draft->room) {
        size_t room = draft->room * 2;
        cw_field *more = PyMem_Malloc(room * sizeof *more);
        if (more == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        memcpy(more, draft->fields, record->field_count * sizeof *more);
        if (draft->fields != draft->few)
            PyMem_Free(draft->fields);
        draft->fields = more;
        draft->room = room;
    }
    cw_field *field = &draft->fields[record->field_count];
    if (!PyUnicode_Check(key)) {
        PyErr_SetString(PyExc_TypeError, "a field's key is a str");
        return -1;
    }
    if (put_string(draft, key, &field->key) < 0)
        return -1;
    if (field->key.length > KEY_BYTES_MAX) {
        PyObject *cut = PyObject_CallFunctionObjArgs(draft->state->key, key, NULL);
        if (keep(draft, cut) < 0 || put_bytes(cut, &field->key) < 0)
            return -1;
    }
    int put = put_plain(draft, field, value);
    if (put == 0) {
        PyObject *plain = PyObject_CallFunctionObjArgs(draft->state->plain, value, NULL);
        if (keep(draft, plain) < 0)
            return -1;
        put = put_plain(draft, field, plain);
        if (put == 0)
            PyErr_SetString(PyExc_TypeError, "plain gives one of four types");
    }
    if (put != 1)
        return -1;
    record->field_count++;
    return 0;
}

/* What is wrong with a call, a str or NULL each; its record has a field for each. */
typedef struct {
    PyObject *format;
    PyObject *level;
} Marks;

static int
put_marks(Draft *draft, const Marks *marks)
{
    State *state = draft->state;
    if (marks->format != NULL && put_field(draft, state->format_error, marks->format) < 0)
        return -1;
    return marks->level == NULL ? 0 : put_field(draft, state->level_error, marks->level);
}

/* True where a mark has that key. */
static bool
is_marked(State *state, const Marks *marks, PyObject *key)
{
    return (marks->format != NULL && same_key(key, state->format_error))
           || (marks->level != NULL && same_key(key, state->level_error));
}

/* Fields of a dict, but for those whose keys are among `names` or `marks`, which the record has;
 * both may be NULL. The dict is private to us: what runs meanwhile cannot change it. */
static int
put_dict(Draft *draft, PyObject *fields, PyObject *names, const Marks *marks)
{
    PyObject *key, *value;
    Py_ssize_t at = 0, count = names == NULL ? 0 : PyTuple_GET_SIZE(names);
    while (PyDict_Next(fields, &at, &key, &value)) {
        bool own = marks != NULL && is_marked(draft->state, marks, key);
        for (Py_ssize_t i = 0; i < count && !own; i++)
            own = same_key(key, PyTuple_GET_ITEM(names, i));
        if (!own && put_field(draft, key, value) < 0)
            return -1;
    }
    return 0;
}

/* Where a record has more fields than the library takes: the first ones, and how many are not among
 * them (_record.cut). */
static int
cut_fields(Draft *draft)
{
    size_t count = draft->record.field_count;
    if (count <= FIELDS_MAX)
        return 0;
    draft->record.field_count = FIELDS_MAX - 1;
    PyObject *lost = PyLong_FromSize_t(count - draft->record.field_count);
    return keep(draft, lost) < 0 ? -1 : put_field(draft, draft->state->fields_cut, lost);
}

/* What _text made of a message: (bytes, what was wrong). The latter becomes a field. */
static int
put_formatted(Draft *draft, PyObject *pair, PyObject **problem)
{
    if (keep(draft, pair) < 0)
        return -1;
    if (!PyTuple_Check(pair) || PyTuple_GET_SIZE(pair) != 2
        || !PyUnicode_Check(PyTuple_GET_ITEM(pair, 1))) {
        PyErr_SetString(PyExc_TypeError, "a pair was expected");
        return -1;
    }
    PyObject *why = PyTuple_GET_ITEM(pair, 1);
    *problem = PyUnicode_GET_LENGTH(why) > 0 ? why : NULL;
    return put_bytes(PyTuple_GET_ITEM(pair, 0), &draft->text);
}

/* A lone argument of these types is never the mapping of "%(name)s". */
static bool
is_no_mapping(PyObject *object)
{
    return PyLong_Check(object) || PyUnicode_Check(object) || PyFloat_Check(object)
           || PyBytes_Check(object) || PyTuple_Check(object) || PyList_Check(object)
           || object == Py_None;
}

/* Writes a number's digits before `end`; where they begin. */
static char *
digits_before(char *end, long long number)
{
    unsigned long long rest = (unsigned long long)number;
    if (number < 0)
        rest = 0 - rest;
    do {
        *--end = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (number < 0)
        *--end = '-';
    return end;
}

/* What message % args gives where the message has only "%d", "%s" and "%%", and the arguments are
 * ints of 64 bits and short str, all ASCII: most messages, at a quarter of the price. False: the
 * message is not of that kind, or its arguments do not fit it; nothing was raised. */
static bool
put_quick(Draft *draft, PyObject *message, PyObject *const *args, Py_ssize_t count)
{
    if (!PyUnicode_IS_COMPACT_ASCII(message))
        return false;
    const char *at = (const char *)PyUnicode_1BYTE_DATA(message);
    const char *end = at + PyUnicode_GET_LENGTH(message);
    char *out = draft->quick;
    Py_ssize_t used = 0, room = QUICK_MAX - (end - at); /* beside the rest of the message */
    if (room < 0)
        return false;
    while (at < end) {
        char kind = *at++;
        if (kind != '%') {
            *out++ = kind;
            continue;
        }
        if (at == end)
            return false;
        kind = *at++;
        if (kind == '%') {
            *out++ = '%';
            continue;
        }
        if ((kind != 'd' && kind != 's') || used == count)
            return false;
        PyObject *argument = args[used++];
        char digits[24];
        const char *text;
        Py_ssize_t length;
        if (PyLong_CheckExact(argument)) {
            int overflow;
            long long number = PyLong_AsLongLongAndOverflow(argument, &overflow);
            if (overflow != 0)
                return false;
            text = digits_before(digits + sizeof digits, number);
            length = digits + sizeof digits - text;
        } else if (kind == 's' && PyUnicode_CheckExact(argument)
                   && PyUnicode_IS_COMPACT_ASCII(argument)) {
            text = (const char *)PyUnicode_1BYTE_DATA(argument);
            length = PyUnicode_GET_LENGTH(argument);
        } else {
            return false;
        }
        room += 2 - length; /* in place of "%d" */
        if (room < 0)
            return false;
        memcpy(out, text, (size_t)length);
        out += length;
    }
    if (used != count)
        return false;
    draft->text.data = draft->quick;
    draft->text.length = (size_t)(out - draft->quick);
    return true;
}

/* The exception that was raised, as an object; it is no longer set. NULL: not an Exception
 * (KeyboardInterrupt, SystemExit), which stays set. */
static PyObject *
caught(void)
{
    if (!PyErr_ExceptionMatches(PyExc_Exception))
        return NULL;
#if PY_VERSION_HEX >= 0x030C0000
    return PyErr_GetRaisedException();
#else
    PyObject *type, *value, *trail;
    PyErr_Fetch(&type, &value, &trail);
    PyErr_NormalizeException(&type, &value, &trail);
    Py_XDECREF(type);
    Py_XDECREF(trail);
    return value;
#endif
}

/* The text of a message and its arguments; *problem: what was wrong, borrowed, or NULL. */
static int
put_message(Draft *draft, PyObject *message, PyObject *const *args, Py_ssize_t count,
            PyObject **problem)
{
    State *state = draft->state;
    if (count == 0) {
        if (PyUnicode_CheckExact(message))
            return put_string(draft, message, &draft->text);
        if (PyBytes_CheckExact(message))
            return put_bytes(message, &draft->text);
    }
    if (count > 0 && PyUnicode_CheckExact(message) && put_quick(draft, message, args, count))
        return 0;
    PyObject *tuple = PyTuple_New(count);
    if (tuple == NULL)
        return -1;
    for (Py_ssize_t i = 0; i < count; i++) {
        Py_INCREF(args[i]);
        PyTuple_SET_ITEM(tuple, i, args[i]);
    }
    PyObject *pair;
    if (PyUnicode_CheckExact(message) && (count != 1 || is_no_mapping(args[0]))) {
        PyObject *text = PyUnicode_Format(message, tuple);
        if (text != NULL) {
            Py_DECREF(tuple);
            return keep(draft, text) < 0 ? -1 : put_string(draft, text, &draft->text);
        }
        PyObject *error = caught(); /* wrong placeholders, or a host's __str__ */
        if (error == NULL) {
            Py_DECREF(tuple);
            return -1;
        }
        pair = PyObject_CallFunctionObjArgs(state->unformatted, message, tuple, error, NULL);
        Py_DECREF(error);
    } else {
        pair = PyObject_CallFunctionObjArgs(state->formatted, message, tuple, NULL);
    }
    Py_DECREF(tuple);
    return put_formatted(draft, pair, problem);
}

static int
put_exception(Draft *draft, PyObject *given)
{
    PyObject *texts = PyObject_CallFunctionObjArgs(draft->state->exception, given, NULL);
    if (keep(draft, texts) < 0)
        return -1;
    if (texts == Py_None)
        return 0;
    if (!PyTuple_Check(texts) || PyTuple_GET_SIZE(texts) != 3) {
        PyErr_SetString(PyExc_TypeError, "three texts were expected");
        return -1;
    }
    cw_record *record = &draft->record;
    return put_bytes(PyTuple_GET_ITEM(texts, 0), &record->exception_type) < 0
                   || put_bytes(PyTuple_GET_ITEM(texts, 1), &record->exception_message) < 0
                   || put_bytes(PyTuple_GET_ITEM(texts, 2), &record->exception_stacktrace) < 0
               ? -1
               : 0;
}

/* ids: None or TraceIds (_context): 16 bytes, 8 bytes or None, flags. */
static void
put_ids(Draft *draft, PyObject *ids)
{
    if (!PyTuple_Check(ids) || PyTuple_GET_SIZE(ids) != 3)
        return;
    PyObject *trace = PyTuple_GET_ITEM(ids, 0), *span = PyTuple_GET_ITEM(ids, 1);
    if (!PyBytes_Check(trace) || PyBytes_GET_SIZE(trace) != 16)
        return;
    draft->record.trace_id = (const uint8_t *)PyBytes_AS_STRING(trace);
    if (PyBytes_Check(span) && PyBytes_GET_SIZE(span) == 8)
        draft->record.span_id = (const uint8_t *)PyBytes_AS_STRING(span);
    draft->record.trace_flags = (uint32_t)PyLong_AsUnsignedLongMask(PyTuple_GET_ITEM(ids, 2));
}

#endif
