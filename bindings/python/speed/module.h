/* The module: its state, `bind` and `logger`. Included at the end of speed.c.
 *
 * The state belongs to one interpreter and lives as long as the module or any of its loggers, which
 * hold the module: a logger that is used while the interpreter ends still has all it needs.
 */
#ifndef CORDWOOD_PYTHON_MODULE_H
#define CORDWOOD_PYTHON_MODULE_H

#include "places.h"
#include "speed.h"

static void *
address_of(PyObject *number)
{
    return PyLong_Check(number) ? PyLong_AsVoidPtr(number) : NULL;
}

/* What `bind` takes from a module. */
typedef struct {
    PyObject **slot;
    PyObject *owner;
    const char *name;
} Attribute;

/* bind(version, write, write_record, site_text, context, text, levels, sites_max) */
static PyObject *
module_bind(PyObject *module, PyObject *args)
{
    State *state = PyModule_GetState(module);
    unsigned long version;
    PyObject *write, *write_record, *site_text, *context, *text, *levels;
    Py_ssize_t sites_max;
    if (!PyArg_ParseTuple(args, "kOOOOOOn", &version, &write, &write_record, &site_text, &context,
                          &text, &levels, &sites_max))
        return NULL;
    if (version != (CW_VERSION_MAJOR << 16 | CW_VERSION_MINOR << 8 | CW_VERSION_PATCH))
        Py_RETURN_FALSE;
    if (!PyContextVar_CheckExact(context)) {
        PyErr_SetString(PyExc_TypeError, "a ContextVar was expected");
        return NULL;
    }
    *(void **)&state->write = address_of(write);
    *(void **)&state->write_record = address_of(write_record);
    *(void **)&state->site_text = address_of(site_text);
    if (state->write == NULL || state->write_record == NULL || state->site_text == NULL) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "addresses were expected");
        return NULL;
    }
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
        {&state->fields_cut, text, "FIELDS_CUT"},
    };
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
        PyObject *found = PyObject_GetAttrString(attributes[i].owner, attributes[i].name);
        if (found == NULL)
            return NULL;
        Py_XSETREF(*attributes[i].slot, found);
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
    {NULL, NULL, 0, NULL},
};

static int
module_exec(PyObject *module)
{
    static const char *const names[] = {"pathname", "funcName", "lineno", "created", "exc_info"};
    State *state = PyModule_GetState(module);
    state->exc_info = PyUnicode_InternFromString("exc_info");
    state->stacklevel = PyUnicode_InternFromString("stacklevel");
    state->ended = PyUnicode_InternFromString("ended");
    state->places = PyDict_New();
    if (state->exc_info == NULL || state->stacklevel == NULL || state->ended == NULL
        || state->places == NULL)
        return -1;
    for (int i = 0; i < 5; i++) {
        state->stdlib[i] = PyUnicode_InternFromString(names[i]);
        if (state->stdlib[i] == NULL)
            return -1;
    }
    PyObject *type = PyType_FromSpec(&logger_spec);
    if (type == NULL)
        return -1;
    state->logger_type = (PyTypeObject *)type;
    Py_INCREF(type);
    if (PyModule_AddObject(module, "Logger", type) < 0) {
        Py_DECREF(type);
        return -1;
    }
    return 0;
}

static int
module_traverse(PyObject *module, visitproc visit, void *arg)
{
    State *state = PyModule_GetState(module);
    if (state == NULL)
        return 0;
    Py_VISIT(state->logger_type);
    Py_VISIT(state->context);
    Py_VISIT(state->number);
    Py_VISIT(state->of_call);
    Py_VISIT(state->encode);
    Py_VISIT(state->formatted);
    Py_VISIT(state->unformatted);
    Py_VISIT(state->plain);
    Py_VISIT(state->key);
    Py_VISIT(state->exception);
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
    .m_doc = "The log calls in C; see cordwood._accelerator.",
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
