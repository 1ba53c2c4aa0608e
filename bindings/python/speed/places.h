/* Places in the source: from a frame to a cw_site that is registered once. As _place.py does it: a
 * table from code and instruction to the place, a dict of distinct places, and a bound on those.
 * Included by speed.c; the GIL is held.
 */
#ifndef CORDWOOD_PYTHON_PLACES_H
#define CORDWOOD_PYTHON_PLACES_H

#include "speed.h"

/* "{}" with one argument, the ready text: kept byte for byte. */
static const uint8_t ARGUMENTS[8] = {CW_ARG_TEXT, CW_ARG_NONE};
#define STRING_MAX 65535

static int
instruction_of(PyFrameObject *frame)
{
#if PY_VERSION_HEX >= 0x030B0000
    return PyFrame_GetLasti(frame);
#else
    return frame->f_lasti;
#endif
}

static size_t
spot_index(PyCodeObject *code, int instruction)
{
    uint64_t key = (uint64_t)(uintptr_t)code ^ ((uint64_t)(uint32_t)instruction << 40);
    return (size_t)((key * 0x9E3779B97F4A7C15u) >> 51); /* 13 bits: SPOTS */
}

/* Where that spot is, or belongs. At least half of the table is free. */
static Spot *
spot_at(State *state, PyCodeObject *code, int instruction)
{
    size_t at = spot_index(code, instruction);
    for (;; at = (at + 1) % SPOTS) {
        Spot *spot = &state->spots[at];
        if (spot->code == NULL || (spot->code == code && spot->instruction == instruction))
            return spot;
    }
}

/* Drops a table; what dies with it may run Python code, which has the new one by then. */
static void
drop_spots(Spot *spots)
{
    if (spots == NULL)
        return;
    for (size_t i = 0; i < SPOTS; i++)
        Py_XDECREF(spots[i].code);
    PyMem_Free(spots);
}

static int
new_spots(State *state)
{
    Spot *old = state->spots, *made = PyMem_Calloc(SPOTS, sizeof *made);
    if (made == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    state->spots = made;
    state->spot_count = 0;
    drop_spots(old);
    return 0;
}

/* A str attribute of the code, encoded: a new reference. */
static PyObject *
encoded(State *state, PyCodeObject *code, const char *attribute)
{
    PyObject *string = PyObject_GetAttrString((PyObject *)code, attribute);
    if (string == NULL)
        return NULL;
    PyObject *bytes = PyObject_CallFunctionObjArgs(state->encode, string, NULL);
    Py_DECREF(string);
    return bytes;
}

static Place *
make_place(PyObject *file, PyObject *function, int line)
{
    size_t file_length = (size_t)PyBytes_GET_SIZE(file);
    size_t function_length = (size_t)PyBytes_GET_SIZE(function);
    Place *place = calloc(1, sizeof *place + file_length + function_length + 2);
    if (place == NULL)
        return NULL;
    char *strings = (char *)(place + 1);
    memcpy(strings, PyBytes_AS_STRING(file), file_length);
    memcpy(strings + file_length + 1, PyBytes_AS_STRING(function), function_length);
    place->file_length = file_length;
    place->function_length = function_length;
    place->site.format = "{}";
    place->site.file = strings;
    place->site.function = strings + file_length + 1;
    place->site.arguments = ARGUMENTS;
    place->site.line = (uint32_t)line;
    place->site.style = CW_STYLE_BRACES;
    return place;
}

/* The place of these; *out NULL: it gets none. -1: an error. */
static int
intern_place(State *state, PyObject *file, PyObject *function, int line, Place **out)
{
    *out = NULL;
    PyObject *key = Py_BuildValue("(OOi)", file, function, line);
    if (key == NULL)
        return -1;
    int result = -1;
    PyObject *known = PyDict_GetItemWithError(state->places, key);
    if (known != NULL) {
        *out = PyLong_AsVoidPtr(known);
        result = 0;
    } else if (!PyErr_Occurred()) {
        size_t longest = (size_t)Py_MAX(PyBytes_GET_SIZE(file), PyBytes_GET_SIZE(function));
        if (PyDict_GET_SIZE(state->places) >= state->sites_max || longest > STRING_MAX
            || strlen(PyBytes_AS_STRING(file)) != (size_t)PyBytes_GET_SIZE(file)
            || strlen(PyBytes_AS_STRING(function)) != (size_t)PyBytes_GET_SIZE(function)) {
            result = 0;
        } else {
            Place *place = make_place(file, function, line);
            PyObject *address = place == NULL ? PyErr_NoMemory() : PyLong_FromVoidPtr(place);
            if (address != NULL && PyDict_SetItem(state->places, key, address) == 0) {
                *out = place;
                result = 0;
            } else {
                free(place); /* nobody has it yet */
            }
            Py_XDECREF(address);
        }
    }
    Py_DECREF(key);
    return result;
}

/* The place of a frame that was not there before. */
static int
find_place(Draft *draft, PyFrameObject *frame, PyCodeObject *code)
{
    State *state = draft->state;
    PyObject *file = encoded(state, code, "co_filename");
    if (keep(draft, file) < 0)
        return -1;
#if PY_VERSION_HEX >= 0x030B0000
    PyObject *function = encoded(state, code, "co_qualname"); /* has the class, too */
#else
    PyObject *function = encoded(state, code, "co_name");
#endif
    if (keep(draft, function) < 0)
        return -1;
    if (!PyBytes_Check(file) || !PyBytes_Check(function)) {
        PyErr_SetString(PyExc_TypeError, "encode gives bytes");
        return -1;
    }
    int line = PyFrame_GetLineNumber(frame);
    Place *place;
    if (intern_place(state, file, function, line < 0 ? 0 : line, &place) < 0)
        return -1;
    if (place == NULL) {
        draft->record.line = (uint32_t)(line < 0 ? 0 : line);
        draft->record.file.data = PyBytes_AS_STRING(file);
        draft->record.file.length = (size_t)PyBytes_GET_SIZE(file);
        draft->record.function.data = PyBytes_AS_STRING(function);
        draft->record.function.length = (size_t)PyBytes_GET_SIZE(function);
        return 0;
    }
    draft->place = place;
    if (state->spot_count >= SPOTS / 2 && new_spots(state) < 0)
        return -1;
    /* Looked up again: Python code ran since. */
    Spot *spot = spot_at(state, code, instruction_of(frame));
    if (spot->code == NULL) {
        Py_INCREF(code);
        spot->code = code;
        spot->instruction = instruction_of(frame);
        spot->place = place;
        state->spot_count++;
    }
    return 0;
}

/* The spot of the running frame, without the frame object that PyEval_GetFrame makes from 3.11 on;
 * NULL: not known yet. It is only looked up: whatever is not among the spots takes the public way,
 * and so does a frame that is not whole, which is never among them. */
static const Spot *
known_spot(State *state)
{
#if PY_VERSION_HEX >= 0x030E0000 || PY_VERSION_HEX < 0x030B0000
    (void)state;
    return NULL;
#else
#if PY_VERSION_HEX >= 0x030D0000
    struct _PyInterpreterFrame *frame = PyThreadState_Get()->current_frame;
#else
    struct _PyInterpreterFrame *frame = PyThreadState_Get()->cframe->current_frame;
#endif
    if (frame == NULL)
        return NULL;
#if PY_VERSION_HEX >= 0x030C0000
    PyObject *code = PyUnstable_InterpreterFrame_GetCode(frame);
    int instruction = PyUnstable_InterpreterFrame_GetLasti(frame);
    const Spot *spot = spot_at(state, (PyCodeObject *)code, instruction);
    Py_DECREF(code);
#else
    int instruction = _PyInterpreterFrame_LASTI(frame) * (int)sizeof(_Py_CODEUNIT);
    const Spot *spot = spot_at(state, frame->f_code, instruction);
#endif
    return spot->code == NULL ? NULL : spot;
#endif
}

/* The place `level` frames above the running one, which is 1. Fewer frames: none. */
static int
put_place(Draft *draft, long level)
{
    const Spot *known = level > 1 ? NULL : known_spot(draft->state);
    if (known != NULL) {
        draft->place = known->place;
        return 0;
    }
    PyFrameObject *frame = PyEval_GetFrame();
    if (frame == NULL) /* called by no Python code */
        return 0;
    Py_INCREF(frame);
    for (; level > 1 && frame != NULL; level--) {
        PyFrameObject *back = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = back;
    }
    if (frame == NULL)
        return 0;
    int result = 0;
    PyCodeObject *code = PyFrame_GetCode(frame);
    Spot *spot = spot_at(draft->state, code, instruction_of(frame));
    if (spot->code != NULL)
        draft->place = spot->place;
    else
        result = find_place(draft, frame, code);
    Py_DECREF(code);
    Py_DECREF(frame);
    return result;
}

#endif
