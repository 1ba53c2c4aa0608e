/* Records of the standard library's `logging`, for Handler. `put_stdlib` looks at attributes by
 * name and leaves the decisions to Handler.emit. `put_usual` does all of emit for a record of the
 * usual form: of the class LogRecord itself, with no attributes but logging's own, in their order,
 * each of its usual type. It takes one walk over the record's dict. Whatever else a record is, it
 * does nothing and says False. Included by speed.c; the GIL is held.
 */
#ifndef CORDWOOD_PYTHON_STDLIB_H
#define CORDWOOD_PYTHON_STDLIB_H

#include "speed.h"

/* A str attribute of a `logging` record, or nothing. */
static int
put_attribute(Draft *draft, PyObject *record, int which, cw_str *out)
{
    PyObject *value = PyObject_GetAttr(record, draft->state->stdlib[which]);
    if (keep(draft, value) < 0)
        return -1;
    return PyUnicode_Check(value) ? put_string(draft, value, out) : 0;
}

/* logging's `created` as a record's time; 0: no record can have it (_text.time_ns). */
static uint64_t
time_of(double seconds)
{
    return seconds >= 1e-9 && seconds < 1.84467440737e10 ? (uint64_t)(seconds * 1e9) : 0;
}

static int
fill_stdlib(Draft *draft, PyObject *source, PyObject *message, PyObject *extra)
{
    State *state = draft->state;
    cw_record *record = &draft->record;
    PyObject *context, *line, *created, *exc_info;
    if (put_string(draft, message, &draft->text) < 0 || put_dict(draft, extra, NULL, NULL) < 0
        || put_attribute(draft, source, STDLIB_FILE, &record->file) < 0
        || put_attribute(draft, source, STDLIB_FUNCTION, &record->function) < 0)
        return -1;
    line = PyObject_GetAttr(source, state->stdlib[STDLIB_LINE]);
    if (keep(draft, line) < 0)
        return -1;
    record->line = PyLong_Check(line) ? (uint32_t)PyLong_AsUnsignedLongMask(line) : 0;
    created = PyObject_GetAttr(source, state->stdlib[STDLIB_CREATED]);
    if (keep(draft, created) < 0)
        return -1;
    double seconds = created == Py_None ? 0 : PyFloat_AsDouble(created);
    if (seconds == -1.0 && PyErr_Occurred())
        return -1;
    record->time_ns = time_of(seconds);
    if (in_force(state, &context) < 0 || keep(draft, context) < 0)
        return -1;
    if (context != Py_None) {
        PyObject *names = PyDict_GET_SIZE(extra) == 0 ? NULL : PySequence_Tuple(extra);
        if (PyErr_Occurred() || (names != NULL && keep(draft, names) < 0)
            || put_context(draft, context, names, NULL) < 0)
            return -1;
    }
    if (cut_fields(draft) < 0)
        return -1;
    exc_info = PyObject_GetAttr(source, state->stdlib[STDLIB_EXCEPTION]);
    if (keep(draft, exc_info) < 0)
        return -1;
    return exc_info == Py_None ? 0 : put_exception(draft, exc_info);
}

/* put_stdlib(record, level, message, extra): for Handler, which has looked at the level, and shows
 * what is raised by its own ways. `extra` is a dict that nobody else has. */
static PyObject *
logger_put_stdlib(PyObject *object, PyObject *const *args, Py_ssize_t count)
{
    Logger *self = (Logger *)object;
    if (count != 4 || !PyUnicode_Check(args[2]) || !PyDict_Check(args[3])) {
        PyErr_SetString(PyExc_TypeError, "put_stdlib(record, level, message, extra)");
        return NULL;
    }
    uint32_t level = level_of(self, args[1]);
    if (level == 0)
        return NULL;
    Draft draft;
    begin(&draft, self->state);
    draft.record.level = level;
    PyObject *result = NULL;
    if (fill_stdlib(&draft, args[0], args[2], args[3]) == 0)
        result = PyBool_FromLong(write_draft(self, &draft) == CW_OK);
    finish(&draft);
    return result;
}

/* What put_usual looks at, in the order of usual_names. */
enum {
    USUAL_LOGGER, USUAL_MESSAGE, USUAL_ARGUMENTS, USUAL_LEVEL, USUAL_FILE, USUAL_EXCEPTION,
    USUAL_STACK, USUAL_LINE, USUAL_FUNCTION, USUAL_CREATED, USUALS,
};

static const char *const usual_names[USUALS] = {
    "name", "msg", "args", "levelno", "pathname", "exc_info", "stack_info", "lineno", "funcName",
    "created",
};

/* usual(type, names): the class of records, and the attributes that it gives each, in their order.
 * False: put_usual cannot tell them. */
static PyObject *
module_usual(PyObject *module, PyObject *args)
{
    State *state = PyModule_GetState(module);
    PyObject *type, *names;
    int found = 0;
    if (!PyArg_ParseTuple(args, "O!O!", &PyType_Type, &type, &PyTuple_Type, &names))
        return NULL;
    if (PyTuple_GET_SIZE(names) > USUAL_MAX)
        Py_RETURN_FALSE;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); i++) {
        PyObject *name = PyTuple_GET_ITEM(names, i);
        if (!PyUnicode_CheckExact(name) || !PyUnicode_CHECK_INTERNED(name))
            Py_RETURN_FALSE;
        state->usual_at[i] = -1;
        for (int which = 0; which < USUALS; which++)
            if (PyUnicode_CompareWithASCIIString(name, usual_names[which]) == 0)
                state->usual_at[i] = (signed char)which, found++;
    }
    if (found != USUALS)
        Py_RETURN_FALSE;
    Py_INCREF(type);
    Py_XSETREF(state->log_record, type);
    Py_INCREF(names);
    Py_XSETREF(state->usual, names);
    Py_RETURN_TRUE;
}

/* The attributes of a record, borrowed. False: it has others; but what formatters of other handlers
 * leave in it may follow. */
static bool
gather(State *state, PyObject *attributes, PyObject **found)
{
    PyObject *key, *value;
    Py_ssize_t at = 0, index = 0, usual = PyTuple_GET_SIZE(state->usual);
    while (PyDict_Next(attributes, &at, &key, &value)) {
        if (index < usual) {
            if (key != PyTuple_GET_ITEM(state->usual, index))
                return false;
            if (state->usual_at[index] >= 0)
                found[state->usual_at[index]] = value;
        } else if (!PyUnicode_Check(key)
                   || (PyUnicode_CompareWithASCIIString(key, "message") != 0
                       && PyUnicode_CompareWithASCIIString(key, "asctime") != 0)) {
            return false;
        }
        index++;
    }
    return index >= usual;
}

static bool
has_usual_types(PyObject *const *found)
{
    return PyUnicode_CheckExact(found[USUAL_LOGGER]) && PyUnicode_CheckExact(found[USUAL_MESSAGE])
        && (found[USUAL_ARGUMENTS] == Py_None || PyTuple_CheckExact(found[USUAL_ARGUMENTS]))
        && PyLong_CheckExact(found[USUAL_LEVEL]) && PyUnicode_CheckExact(found[USUAL_FILE])
        && found[USUAL_EXCEPTION] == Py_None && found[USUAL_STACK] == Py_None
        && PyLong_CheckExact(found[USUAL_LINE]) && PyUnicode_CheckExact(found[USUAL_FUNCTION])
        && PyFloat_CheckExact(found[USUAL_CREATED])
        && time_of(PyFloat_AS_DOUBLE(found[USUAL_CREATED])) != 0;
}

/* An argument's __str__ may run anything, so the draft keeps what is used after it. */
static int
fill_usual(Draft *draft, PyObject *const *found)
{
    State *state = draft->state;
    cw_record *record = &draft->record;
    PyObject *message = found[USUAL_MESSAGE], *arguments = found[USUAL_ARGUMENTS], *context;
    const int used[] = {USUAL_MESSAGE, USUAL_ARGUMENTS, USUAL_FILE, USUAL_FUNCTION};
    for (int i = 0; i < 4; i++) {
        Py_INCREF(found[used[i]]);
        if (keep(draft, found[used[i]]) < 0)
            return -1;
    }
    record->line = (uint32_t)PyLong_AsUnsignedLongMask(found[USUAL_LINE]);
    record->time_ns = time_of(PyFloat_AS_DOUBLE(found[USUAL_CREATED]));
    if (put_string(draft, found[USUAL_FILE], &record->file) < 0
        || put_string(draft, found[USUAL_FUNCTION], &record->function) < 0)
        return -1;
    Py_ssize_t count = arguments == Py_None ? 0 : PyTuple_GET_SIZE(arguments);
    if (count == 0) {
        if (put_string(draft, message, &draft->text) < 0)
            return -1;
    } else if (!put_quick(draft, message, ((PyTupleObject *)arguments)->ob_item, count)) {
        PyObject *text = PyUnicode_Format(message, arguments);
        if (keep(draft, text) < 0 || put_string(draft, text, &draft->text) < 0)
            return -1;
    }
    if (in_force(state, &context) < 0 || keep(draft, context) < 0)
        return -1;
    return context == Py_None ? 0
        : put_context(draft, context, NULL, NULL) < 0 ? -1 : cut_fields(draft);
}

/* 1: written, or below the level; 0: not a usual record; -1: an error is set. */
static int
put_found(State *state, PyObject *const *found, PyObject *loggers, PyObject *levels)
{
    if (!has_usual_types(found))
        return 0;
    PyObject *object = PyDict_GetItemWithError(loggers, found[USUAL_LOGGER]);
    if (object == NULL || Py_TYPE(object) != state->logger_type)
        return PyErr_Occurred() ? -1 : 0;
    PyObject *level = PyDict_GetItemWithError(levels, found[USUAL_LEVEL]);
    if (level == NULL || !PyLong_CheckExact(level))
        return PyErr_Occurred() ? -1 : 0;
    Logger *self = (Logger *)object;
    uint32_t number = (uint32_t)PyLong_AsUnsignedLongMask(level);
    if (!is_enabled(self, number))
        return 1;
    Draft draft;
    begin(&draft, state);
    draft.record.level = number;
    Py_INCREF(self);
    int failed = fill_usual(&draft, found);
    if (failed == 0)
        write_draft(self, &draft);
    Py_DECREF(self);
    finish(&draft);
    return failed == 0 ? 1 : -1;
}

/* put_usual(record, loggers, levels): loggers: by name; levels: ours of logging's. False: nothing
 * was written; Handler.emit writes the record, and says what is wrong with it. */
static PyObject *
module_put_usual(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    State *state = PyModule_GetState(module);
    PyObject *found[USUALS];
    if (count != 3 || state->usual == NULL || (PyObject *)Py_TYPE(args[0]) != state->log_record
        || !PyDict_CheckExact(args[1]) || !PyDict_CheckExact(args[2]))
        Py_RETURN_FALSE;
    PyObject *attributes = PyObject_GenericGetDict(args[0], NULL);
    int put = attributes == NULL ? -1
        : gather(state, attributes, found) ? put_found(state, found, args[1], args[2]) : 0;
    Py_XDECREF(attributes);
    if (put < 0) {
        if (!PyErr_ExceptionMatches(PyExc_Exception))
            return NULL;
        PyErr_Clear();
        put = 0;
    }
    return PyBool_FromLong(put);
}

#endif
