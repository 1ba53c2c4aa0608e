/* The module: its state, `bind` and `logger`. Included at the end of speed.c.
 *
 * The state belongs to one interpreter and lives as long as the module or any of its loggers, which
 * hold the module: a logger that is used while the interpreter ends still has all it needs.
 */
#ifndef CORDWOOD_PYTHON_MODULE_H
#define CORDWOOD_PYTHON_MODULE_H

#include "cursor.h"
#include "places.h"
#include "speed.h"

/* What `bind` takes from a module. */
typedef struct {
    PyObject **slot;
    PyObject *owner;
    const char *name;
} Attribute;

/* bind(version, calls, context, text, levels, records, sites_max); calls: the addresses of
 * cw_write, cw_write_record, cw_site_text, cw_reader_next, cw_reader_close, cw_last_error */
static PyObject *
module_bind(PyObject *module, PyObject *args)
{
    State *state = PyModule_GetState(module);
    unsigned long version;
    PyObject *calls[6], *context, *text, *levels, *records;
    void *found[6];
    Py_ssize_t sites_max;
    if (!PyArg_ParseTuple(args, "k(OOOOOO)OOOOn", &version, &calls[0], &calls[1], &calls[2],
                          &calls[3], &calls[4], &calls[5], &context, &text, &levels, &records,
                          &sites_max))
        return NULL;
    if (version != (CW_VERSION_MAJOR << 16 | CW_VERSION_MINOR << 8 | CW_VERSION_PATCH))
        Py_RETURN_FALSE;
    if (!PyContextVar_CheckExact(context)) {
        PyErr_SetString(PyExc_TypeError, "a ContextVar was expected");
        return NULL;
    }
    for (int i = 0; i < 6; i++) {
        found[i] = address_of(calls[i]);
        if (found[i] == NULL) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_TypeError, "addresses were expected");
            return NULL;
        }
    }
    *(void **)&state->write = found[0];
    *(void **)&state->write_record = found[1];
    *(void **)&state->site_text = found[2];
    *(void **)&state->next = found[3];
    *(void **)&state->close = found[4];
    *(void **)&state->last_error = found[5];
    Py_INCREF(context);
    Py_XSETREF(state->context, context);
    state->sites_max = sites_max;
    const Attribute attributes[] = {
        {&state->number, levels, "number"},       {&state->of_call, levels, "of_call"},
        {&state->level_error, levels, "LEVEL_ERROR"},
        {&state->encode, text, "encode"},         {&state->formatted, text, "formatted"},
        {&state->unformatted, text, "unformatted"}, {&state->plain, text, "plain"},
        {&state->key, text, "key"},               {&state->exception, text, "exception"},
        {&state->format_error, text, "FORMAT_ERROR"},
        {&state->fields_cut, text, "FIELDS_CUT"}, {&state->level_name, levels, "name"},
        {&state->plain_record, records, "Record"}, {&state->json_bytes, text, "JSONBytes"},
        {&state->json_value, records, "json_value"},
    };
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
        PyObject *attribute = PyObject_GetAttrString(attributes[i].owner, attributes[i].name);
        if (attribute == NULL)
            return NULL;
        Py_XSETREF(*attributes[i].slot, attribute);
    }
    if (!PyUnicode_Check(state->level_error) || !PyUnicode_Check(state->format_error)
        || !PyUnicode_Check(state->fields_cut)) {
        PyErr_SetString(PyExc_TypeError, "the keys of marks are str");
        return NULL;
    }
    if (state->spots == NULL && new_spots(state) < 0)
        return NULL;
    Py_RETURN_TRUE;
}

/* logger(name, handle, waits) */
static PyObject *
module_logger(PyObject *module, PyObject *args)
{
    State *state = PyModule_GetState(module);
    PyObject *name, *handle;
    int waits;
    if (!PyArg_ParseTuple(args, "UOp", &name, &handle, &waits))
        return NULL;
    void *address = address_of(handle);
    if (state->spots == NULL || address == NULL) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "no library is bound, or the handle is none");
        return NULL;
    }
    Logger *self = PyObject_New(Logger, state->logger_type);
    if (self == NULL)
        return NULL;
#if PY_VERSION_HEX < 0x03080000
    Py_INCREF(state->logger_type);
#endif
    Py_INCREF(name);
    Py_INCREF(module);
    self->name = name;
    self->module = module;
    self->state = state;
    self->handle = address;
    self->waits = waits != 0;
    return (PyObject *)self;
}

static PyMethodDef module_methods[] = {
    {"bind", module_bind, METH_VARARGS, "Takes the library's calls; False: another version."},
    {"logger", module_logger, METH_VARARGS, "A logger of a handle of cw_logger_get."},
    {"usual", module_usual, METH_VARARGS, "Takes logging's class of records, and its attributes."},
    {"put_usual", (PyCFunction)(void (*)(void))module_put_usual, METH_FASTCALL,
     "put_usual(record, loggers, levels, /)\n--\n\n"
     "Writes a usual record of `logging`'s, or says False."},
    {NULL, NULL, 0, NULL},
};

/* Makes a type of the module; *out is the state's own reference. */
static int
add_type(PyObject *module, PyType_Spec *spec, const char *name, PyTypeObject **out)
{
    PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);
    if (type == NULL)
        return -1;
    *out = (PyTypeObject *)type;
    Py_INCREF(type);
    if (PyModule_AddObject(module, name, type) < 0) {
        Py_DECREF(type);
        return -1;
    }
    return 0;
}

static int
module_exec(PyObject *module)
{
    static const char *const names[] = {"pathname", "funcName", "lineno", "created", "exc_info"};
    State *state = PyModule_GetState(module);
    state->exc_info = PyUnicode_InternFromString("exc_info");
    state->stacklevel = PyUnicode_InternFromString("stacklevel");
    state->ended = PyUnicode_InternFromString("ended");
    state->met = PyUnicode_InternFromString("_met");
    state->places = PyDict_New();
    if (state->exc_info == NULL || state->stacklevel == NULL || state->ended == NULL
        || state->met == NULL || state->places == NULL)
        return -1;
    for (int i = 0; i < 5; i++) {
        state->stdlib[i] = PyUnicode_InternFromString(names[i]);
        if (state->stdlib[i] == NULL)
            return -1;
    }
    state->dates = PyCapsule_Import(PyDateTime_CAPSULE_NAME, 0);
    if (state->dates == NULL || add_type(module, &logger_spec, "Logger", &state->logger_type) < 0
        || add_type(module, &record_spec, "Record", &state->record_type) < 0)
        return -1;
    return add_type(module, &cursor_spec, "Cursor", &state->cursor_type);
}

static int
module_traverse(PyObject *module, visitproc visit, void *arg)
{
    State *state = PyModule_GetState(module);
    if (state == NULL)
        return 0;
    Py_VISIT(state->logger_type);
    Py_VISIT(state->record_type);
    Py_VISIT(state->cursor_type);
    Py_VISIT(state->plain_record);
    Py_VISIT(state->json_bytes);
    Py_VISIT(state->json_value);
    Py_VISIT(state->level_name);
    Py_VISIT(state->context);
    Py_VISIT(state->number);
    Py_VISIT(state->of_call);
    Py_VISIT(state->encode);
    Py_VISIT(state->formatted);
    Py_VISIT(state->unformatted);
    Py_VISIT(state->plain);
    Py_VISIT(state->key);
    Py_VISIT(state->exception);
    Py_VISIT(state->log_record);
    Py_VISIT(state->places);
    return 0;
}

static int
module_clear(PyObject *module)
{
    State *state = PyModule_GetState(module);
    if (state == NULL)
        return 0;
    Spot *spots = state->spots;
    state->spots = NULL;
    drop_spots(spots);
    Py_CLEAR(state->logger_type);
    Py_CLEAR(state->record_type);
    Py_CLEAR(state->cursor_type);
    Py_CLEAR(state->plain_record);
    Py_CLEAR(state->json_bytes);
    Py_CLEAR(state->json_value);
    Py_CLEAR(state->level_name);
    Py_CLEAR(state->met);
    for (int i = 0; i < NAMES; i++)
        Py_CLEAR(state->names[i]);
    for (int i = 0; i < LEVELS; i++)
        Py_CLEAR(state->levels[i]);
    Py_CLEAR(state->context);
    Py_CLEAR(state->number);
    Py_CLEAR(state->of_call);
    Py_CLEAR(state->level_error);
    Py_CLEAR(state->encode);
    Py_CLEAR(state->formatted);
    Py_CLEAR(state->unformatted);
    Py_CLEAR(state->plain);
    Py_CLEAR(state->key);
    Py_CLEAR(state->exception);
    Py_CLEAR(state->format_error);
    Py_CLEAR(state->fields_cut);
    Py_CLEAR(state->exc_info);
    Py_CLEAR(state->stacklevel);
    Py_CLEAR(state->ended);
    Py_CLEAR(state->log_record);
    Py_CLEAR(state->usual);
    Py_CLEAR(state->places);
    for (int i = 0; i < 5; i++)
        Py_CLEAR(state->stdlib[i]);
    return 0;
}

static void
module_free(void *module)
{
    module_clear(module);
}

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, (void *)module_exec},
#if PY_VERSION_HEX >= 0x030C0000
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
    {0, NULL},
};

static struct PyModuleDef module_def = {
    PyModuleDef_HEAD_INIT,
    .m_name = "cordwood._speed",
    .m_doc = "The log calls and the reader in C; see cordwood._accelerator.",
    .m_size = sizeof(State),
    .m_methods = module_methods,
    .m_slots = module_slots,
    .m_traverse = module_traverse,
    .m_clear = module_clear,
    .m_free = module_free,
};

PyMODINIT_FUNC
PyInit__speed(void)
{
    return PyModuleDef_Init(&module_def);
}

#endif
