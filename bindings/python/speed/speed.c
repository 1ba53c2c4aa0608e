/* cordwood._speed: the log calls in C. The same behaviour as _logger.py, which says what each call
 * does, at a tenth of its price: the level is one load, the frame gives the place, the text is
 * copied once, by the library.
 *
 * Owner: _accelerator.py, which binds the addresses of the write calls of the library that ctypes
 * has loaded; there is no other copy of it. Threads: any, with the GIL. It is held during a write,
 * which takes less time than handing it over, but let go where the engine may wait for room
 * (overflow "block"). Fork, nested calls and signal handlers: a call has all it needs on its stack.
 */
#include "speed.h"

#include "places.h"
#include "values.h"

static bool
is_enabled(const Logger *self, uint32_t level)
{
    return cw_enabled(self->handle, level);
}

/* True or False for what happened; an Exception inside is "not kept", never the host's to see. */
static PyObject *
answer(int failed, cw_status status)
{
    if (failed < 0) {
        if (!PyErr_ExceptionMatches(PyExc_Exception))
            return NULL;
        PyErr_Clear();
        Py_RETURN_FALSE;
    }
    if (status == CW_OK)
        Py_RETURN_TRUE;
    Py_RETURN_FALSE;
}

static cw_status
write_draft(Logger *self, Draft *draft)
{
    cw_record *record = &draft->record;
    record->message = draft->text;
    record->fields = record->field_count > 0 ? draft->fields : NULL;
    if (draft->place != NULL) {
        record->file.data = draft->place->site.file;
        record->file.length = draft->place->file_length;
        record->function.data = draft->place->site.function;
        record->function.length = draft->place->function_length;
        record->line = draft->place->site.line;
    }
    cw_status status;
    if (self->waits) {
        Py_BEGIN_ALLOW_THREADS
        status = self->state->write_record(self->handle, record);
        Py_END_ALLOW_THREADS
    } else {
        status = self->state->write_record(self->handle, record);
    }
    return status;
}

static cw_status
write_site(Logger *self, uint32_t level, Draft *draft)
{
    cw_site *site = &draft->place->site;
    const char *text = draft->text.data;
    uint32_t length = (uint32_t)draft->text.length;
    cw_status status;
    if (self->waits) {
        Py_BEGIN_ALLOW_THREADS
        status = self->state->site_text(self->handle, level, site, text, length);
        Py_END_ALLOW_THREADS
    } else {
        status = self->state->site_text(self->handle, level, site, text, length);
    }
    return status;
}

/* What is in force of cordwood.context and cordwood.trace (_context.State), or None: a new
 * reference, kept. `names` and `marks`: keys that the record has itself. */
static int
put_context(Draft *draft, PyObject *state, PyObject *names, const Marks *marks)
{
    if (!PyTuple_Check(state) || PyTuple_GET_SIZE(state) != 2)
        return 0;
    put_ids(draft, PyTuple_GET_ITEM(state, 1));
    PyObject *fields = PyTuple_GET_ITEM(state, 0);
    return PyDict_Check(fields) ? put_dict(draft, fields, names, marks) : 0;
}

/* What is in force, a new reference; where its innermost transaction has ended, what is left. */
static int
in_force(State *state, PyObject **out)
{
    if (PyContextVar_Get(state->context, NULL, out) < 0)
        return -1;
    if (*out == Py_None)
        return 0;
    PyObject *ended = PyObject_GetAttr(*out, state->ended);
    int has_ended = ended == NULL ? -1 : PyObject_IsTrue(ended);
    Py_XDECREF(ended);
    if (has_ended > 0)
        Py_SETREF(*out, PyObject_CallMethod(*out, "current", NULL));
    if (has_ended < 0)
        Py_CLEAR(*out);
    return *out == NULL ? -1 : 0;
}

/* The keywords: fields, but for exc_info and stacklevel. What is wrong with the call stands first:
 * where there are too many fields the last ones are cut. */
static int
put_keywords(Draft *draft, PyObject *names, PyObject *const *values, const Marks *marks,
             PyObject **exc_info, long *stacklevel)
{
    State *state = draft->state;
    if (put_marks(draft, marks) < 0)
        return -1;
    Py_ssize_t count = names == NULL ? 0 : PyTuple_GET_SIZE(names);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *name = PyTuple_GET_ITEM(names, i);
        if (is_named(name, state->exc_info)) {
            *exc_info = values[i];
        } else if (is_named(name, state->stacklevel)) {
            int overflow = 0;
            if (PyLong_Check(values[i]))
                *stacklevel = PyLong_AsLongAndOverflow(values[i], &overflow);
            if (overflow > 0)
                *stacklevel = 1L << 30;
        } else if (!is_marked(state, marks, name)) {
            if (put_field(draft, name, values[i]) < 0)
                return -1;
        }
    }
    return 0;
}

static int
fill(Draft *draft, PyObject *message, PyObject *const *args, Py_ssize_t count, PyObject *names,
     PyObject *exc_info, PyObject *level_problem)
{
    State *state = draft->state;
    Marks marks = {NULL, level_problem};
    PyObject *context;
    long stacklevel = 1;
    if (put_message(draft, message, args, count, &marks.format) < 0)
        return -1;
    if ((names != NULL || marks.format != NULL || level_problem != NULL)
        && put_keywords(draft, names, args + count, &marks, &exc_info, &stacklevel) < 0)
        return -1;
    if (put_place(draft, stacklevel) < 0)
        return -1;
    if (in_force(state, &context) < 0)
        return -1;
    if (context == Py_None) {
        Py_DECREF(context);
    } else if (keep(draft, context) < 0
               || put_context(draft, context, names, &marks) < 0) {
        return -1;
    }
    if (draft->record.field_count > FIELDS_MAX && cut_fields(draft) < 0)
        return -1;
    return exc_info == Py_None ? 0 : put_exception(draft, exc_info);
}

static PyObject *
emit(Logger *self, uint32_t level, PyObject *message, PyObject *const *args, Py_ssize_t count,
     PyObject *names, PyObject *exc_info, PyObject *level_problem)
{
    Draft draft;
    begin(&draft, self->state);
    cw_status status = CW_DISABLED;
    int failed = fill(&draft, message, args, count, names, exc_info, level_problem);
    if (failed == 0) {
        const cw_record *record = &draft.record;
        draft.record.level = level;
        if (draft.place != NULL && record->field_count == 0 && record->trace_id == NULL
            && record->exception_type.length == 0 && record->exception_message.length == 0
            && draft.text.length < CW_STRING_MAX)
            status = write_site(self, level, &draft);
        else
            status = write_draft(self, &draft);
    }
    PyObject *result = answer(failed, status);
    finish(&draft);
    return result;
}

static PyObject *
no_message(const char *name)
{
    PyErr_Format(PyExc_TypeError, "%s() needs a message", name);
    return NULL;
}

#define METHOD(name, level, exc_info)                                                              \
    static PyObject *logger_##name(PyObject *object, PyObject *const *args, Py_ssize_t count,      \
                                   PyObject *names)                                                \
    {                                                                                              \
        Logger *self = (Logger *)object;                                                           \
        if (count < 1)                                                                             \
            return no_message(#name);                                                              \
        if (!is_enabled(self, level))                                                              \
            Py_RETURN_FALSE;                                                                       \
        return emit(self, level, args[0], args + 1, count - 1, names, exc_info, NULL);             \
    }

METHOD(trace, CW_LEVEL_TRACE, Py_None)
METHOD(debug, CW_LEVEL_DEBUG, Py_None)
METHOD(info, CW_LEVEL_INFO, Py_None)
METHOD(notice, CW_LEVEL_NOTICE, Py_None)
METHOD(warning, CW_LEVEL_WARN, Py_None)
METHOD(error, CW_LEVEL_ERROR, Py_None)
METHOD(exception, CW_LEVEL_ERROR, Py_True)
METHOD(critical, CW_LEVEL_FATAL, Py_None)

/* A level: its number, or what _levels.number makes of it. 0 with an error set: none. */
static uint32_t
level_of(Logger *self, PyObject *level)
{
    if (PyLong_CheckExact(level)) {
        long number = PyLong_AsLong(level);
        if (number >= CW_LEVEL_TRACE && number <= 24)
            return (uint32_t)number;
        PyErr_Clear();
    }
    PyObject *found = PyObject_CallFunctionObjArgs(self->state->number, level, NULL);
    if (found == NULL)
        return 0;
    unsigned long number = PyLong_AsUnsignedLong(found);
    Py_DECREF(found);
    if (!PyErr_Occurred() && (number == 0 || number > CW_LEVEL_OFF))
        PyErr_SetString(PyExc_ValueError, "no level has that number");
    return PyErr_Occurred() ? 0 : (uint32_t)number;
}

/* A log call's level, which is never refused: an unknown one becomes a warning, and *problem says
 * why (a new reference, or NULL). 0 with an error set: something other than an Exception was
 * raised. */
static uint32_t
level_of_call(Logger *self, PyObject *level, PyObject **problem)
{
    *problem = NULL;
    if (PyLong_CheckExact(level)) {
        long number = PyLong_AsLong(level);
        if (number >= CW_LEVEL_TRACE && number <= 24)
            return (uint32_t)number;
        PyErr_Clear();
    }
    PyObject *pair = PyObject_CallFunctionObjArgs(self->state->of_call, level, NULL);
    if (pair == NULL)
        return 0;
    PyObject *why;
    unsigned long number = 0;
    if (PyArg_ParseTuple(pair, "kU", &number, &why) && PyUnicode_GET_LENGTH(why) > 0) {
        Py_INCREF(why);
        *problem = why;
    }
    Py_DECREF(pair);
    return PyErr_Occurred() ? 0 : (uint32_t)number;
}

static PyObject *
logger_log(PyObject *object, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    Logger *self = (Logger *)object;
    if (count < 2)
        return no_message("log");
    PyObject *problem, *result = Py_False;
    uint32_t level = level_of_call(self, args[0], &problem);
    if (level == 0)
        return NULL;
    if (is_enabled(self, level))
        result = emit(self, level, args[1], args + 2, count - 2, names, Py_None, problem);
    else
        Py_INCREF(result);
    Py_XDECREF(problem);
    return result;
}

static PyObject *
logger_enabled(PyObject *object, PyObject *given)
{
    uint32_t level = level_of((Logger *)object, given);
    return level == 0 ? NULL : PyBool_FromLong(is_enabled((Logger *)object, level));
}

static PyObject *
logger_write(PyObject *object, PyObject *const *args, Py_ssize_t count)
{
    Logger *self = (Logger *)object;
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, "write() takes a level and bytes");
        return NULL;
    }
    PyObject *problem;
    uint32_t level = level_of_call(self, args[0], &problem);
    if (level == 0)
        return NULL;
    Draft draft;
    Marks marks = {NULL, problem};
    begin(&draft, self->state);
    PyObject *data = args[1], *context;
    Py_INCREF(data);
    if (!PyBytes_Check(data))
        Py_SETREF(data, PyObject_CallFunctionObjArgs((PyObject *)&PyBytes_Type, data, NULL));
    if ((problem != NULL && keep(&draft, problem) < 0) || keep(&draft, data) < 0
        || put_bytes(data, &draft.text) < 0) {
        finish(&draft);
        return NULL;
    }
    cw_status status = CW_DISABLED;
    int failed = in_force(self->state, &context);
    if (failed == 0 && (context != Py_None || problem != NULL)) {
        failed = keep(&draft, context) < 0 || put_marks(&draft, &marks) < 0
                || put_context(&draft, context, NULL, &marks) < 0 || cut_fields(&draft) < 0
            ? -1 : 0;
        draft.record.level = level;
        if (failed == 0)
            status = write_draft(self, &draft);
    } else if (failed == 0) {
        Py_DECREF(context);
        if (self->waits) {
            Py_BEGIN_ALLOW_THREADS
            status = self->state->write(self->handle, level, draft.text.data, draft.text.length);
            Py_END_ALLOW_THREADS
        } else {
            status = self->state->write(self->handle, level, draft.text.data, draft.text.length);
        }
    }
    PyObject *result = answer(failed, status);
    finish(&draft);
    return result;
}

#include "stdlib.h"

static PyObject *
logger_self(PyObject *self, PyObject *Py_UNUSED(memo))
{
    Py_INCREF(self);
    return self;
}

static PyObject *
logger_repr(PyObject *self)
{
    return PyUnicode_FromFormat("<cordwood.Logger %R>", ((Logger *)self)->name);
}

static PyObject *
logger_new(PyTypeObject *Py_UNUSED(type), PyObject *Py_UNUSED(args), PyObject *Py_UNUSED(names))
{
    PyErr_SetString(PyExc_TypeError, "loggers are made by Engine.logger");
    return NULL;
}

static void
logger_free(PyObject *object)
{
    Logger *self = (Logger *)object;
    PyTypeObject *type = Py_TYPE(object);
    Py_XDECREF(self->name);
    Py_XDECREF(self->module);
    PyObject_Free(object);
    Py_DECREF(type);
}

#define FAST (METH_FASTCALL | METH_KEYWORDS)
#define KEYWORDS "($self, message, /, *args, exc_info=None, stacklevel=1, **fields)\n--\n\n"
#define LEVEL_METHOD(name, function, doc)                                                          \
    {name, (PyCFunction)(void (*)(void))function, FAST, name KEYWORDS doc}

static PyMethodDef logger_methods[] = {
    LEVEL_METHOD("trace", logger_trace, "A record of level TRACE."),
    LEVEL_METHOD("debug", logger_debug, "A record of level DEBUG."),
    LEVEL_METHOD("info", logger_info, "A record of level INFO."),
    LEVEL_METHOD("notice", logger_notice, "A record of level NOTICE."),
    LEVEL_METHOD("warning", logger_warning, "A record of level WARN."),
    LEVEL_METHOD("warn", logger_warning, "A record of level WARN."),
    LEVEL_METHOD("error", logger_error, "A record of level ERROR."),
    LEVEL_METHOD("exception", logger_exception,
                 "A record of level ERROR with the exception that is being handled."),
    LEVEL_METHOD("critical", logger_critical, "A record of level FATAL."),
    LEVEL_METHOD("fatal", logger_critical, "A record of level FATAL."),
    {"log", (PyCFunction)(void (*)(void))logger_log, FAST,
     "log($self, level, message, /, *args, exc_info=None, stacklevel=1, **fields)\n--\n\n"
     "A record of any level: a name, or a number from 1 to 24 (not the stdlib's 10 to 50)."},
    {"enabled", logger_enabled, METH_O,
     "enabled($self, level, /)\n--\n\nTrue where a record of that level would be written."},
    {"write", (PyCFunction)(void (*)(void))logger_write, METH_FASTCALL,
     "write($self, level, data, /)\n--\n\n"
     "A record of bytes as they are: no place in the source, the shortest way."},
    {"put_stdlib", (PyCFunction)(void (*)(void))logger_put_stdlib, METH_FASTCALL,
     "put_stdlib($self, record, level, message, extra, /)\n--\n\n"
     "A record of `logging`'s; for Handler."},
    {"__copy__", logger_self, METH_NOARGS, NULL},
    {"__deepcopy__", logger_self, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef logger_members[] = {
    {"name", T_OBJECT_EX, offsetof(Logger, name), READONLY, NULL},
    {"_handle", T_PYSSIZET, offsetof(Logger, handle), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot logger_slots[] = {
    {Py_tp_doc, "Made by Engine.logger. `debug` … `critical` take the standard library's\n"
                "arguments (%-arguments, exc_info, stacklevel); further keywords are typed\n"
                "fields of the record."},
    {Py_tp_new, logger_new},
    {Py_tp_dealloc, logger_free},
    {Py_tp_repr, logger_repr},
    {Py_tp_methods, logger_methods},
    {Py_tp_members, logger_members},
    {0, NULL},
};

static PyType_Spec logger_spec = {
    .name = "cordwood.Logger",
    .basicsize = sizeof(Logger),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = logger_slots,
};

#include "module.h"
