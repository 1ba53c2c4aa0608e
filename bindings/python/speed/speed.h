/* The accelerator's own types and helpers: one translation unit, speed.c includes the parts.
 *
 * Owner: cordwood._speed, one state in each interpreter. Everything here runs with the GIL held; it
 * is let go only around a write of an engine that may wait (CW_OVERFLOW_BLOCK), so what a record
 * points at is owned by the call (Kept), by the caller's arguments, or never freed (Place), and
 * while a reader reads (cursor.h).
 */
#ifndef CORDWOOD_PYTHON_SPEED_H
#define CORDWOOD_PYTHON_SPEED_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <datetime.h>
#include <frameobject.h>
#include <structmember.h>
#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030C0000
#define Py_BUILD_CORE
#include <internal/pycore_frame.h> /* known_spot: 3.11 has no function for it */
#undef Py_BUILD_CORE
#endif

#include <cordwood/cordwood.h>

#ifdef Py_GIL_DISABLED
#error "the accelerator needs the GIL; without it the package goes through ctypes"
#endif

/* Places found by code and instruction; more than half of them full: all are forgotten. */
#define SPOTS 8192
#define FIELDS_FEW 16
#define KEPT_FEW 8
/* The library's limits. */
#define FIELDS_MAX 4096
#define KEY_BYTES_MAX 65535
/* Messages that are put together without a str. */
#define QUICK_MAX 512
/* Longer texts are encoded for the call, not for the life of the string. */
#define CACHED_MAX 4096
/* Texts of this length at most that were read are remembered, so many of them. */
#define NAME_MAX_BYTES 64
#define NAMES 256
#define LEVELS 25
/* The attributes of logging's records, at most. */
#define USUAL_MAX 32

/* A place in the source; never freed, at most sites_max of them. Its strings stand behind it. */
typedef struct {
    cw_site site;
    size_t file_length;
    size_t function_length;
} Place;

/* Where a frame stands, and its place. Holds the code, lest another gets its address. */
typedef struct {
    PyCodeObject *code;
    int instruction;
    Place *place;
} Spot;

typedef struct {
    cw_status (*write)(cw_logger *, cw_level, const char *, size_t);
    cw_status (*write_record)(cw_logger *, const cw_record *);
    cw_status (*site_text)(cw_logger *, cw_level, cw_site *, const char *, uint32_t);
    cw_status (*next)(cw_reader *, cw_record_view *);
    cw_status (*close)(cw_reader **);
    size_t (*last_error)(char *, size_t);
    PyTypeObject *logger_type;
    PyTypeObject *record_type;
    PyTypeObject *cursor_type;
    PyDateTime_CAPI *dates;
    PyObject *context;     /* _context.STATE */
    PyObject *number;      /* _levels.number, and what a log call takes instead */
    PyObject *of_call;
    PyObject *level_error; /* the key of what was wrong with a level */
    PyObject *encode;      /* what is left to Python: functions of _text */
    PyObject *formatted;
    PyObject *unformatted;
    PyObject *plain;
    PyObject *json_bytes;   /* the type of what plain gives of a dict, a list and their like */
    PyObject *json_value;   /* what a text of JSON stands for (_record_view) */
    PyObject *key;
    PyObject *exception;
    PyObject *format_error; /* the key of what was wrong with a format */
    PyObject *fields_cut;   /* the key of how many fields are not there */
    PyObject *plain_record; /* the named tuple of a record (_record_view) */
    PyObject *level_name;   /* _levels.name */
    PyObject *exc_info;     /* interned names */
    PyObject *stacklevel;
    PyObject *ended;
    PyObject *met;
    PyObject *stdlib[5];    /* attributes of a `logging` record, in the order of STDLIB_… */
    PyObject *log_record;   /* logging's class of records, or NULL; its attributes (stdlib.h) */
    PyObject *usual;
    signed char usual_at[USUAL_MAX]; /* which of them put_usual looks at; -1: none */
    PyObject *places;       /* (file, function, line) → int, the address of a Place */
    Py_ssize_t sites_max;
    Spot *spots;
    size_t spot_count;
    PyObject *names[NAMES];   /* str that were read, ASCII, or NULL */
    PyObject *levels[LEVELS]; /* what level_name said, or NULL */
} State;

enum { STDLIB_FILE, STDLIB_FUNCTION, STDLIB_LINE, STDLIB_CREATED, STDLIB_EXCEPTION };

typedef struct {
    PyObject_HEAD
    PyObject *module;
    State *state; /* the module's */
    PyObject *name;
    cw_logger *handle;
    bool waits; /* the engine's overflow is "block" */
} Logger;

/* References that a call owns until its record is written. */
typedef struct {
    PyObject *few[KEPT_FEW];
    int count;
    PyObject *more; /* a list, or NULL */
} Kept;

/* A record in the making. `fields` is `few` or memory of PyMem_Malloc. */
typedef struct {
    State *state;
    Kept kept;
    cw_str text;
    Place *place; /* NULL: file, function and line stand in the record */
    cw_record record;
    size_t room;
    cw_field *fields;
    cw_field few[FIELDS_FEW];
    char quick[QUICK_MAX];
} Draft;

static void *
address_of(PyObject *number)
{
    return PyLong_Check(number) ? PyLong_AsVoidPtr(number) : NULL;
}

/* Takes over a reference, also where it fails; -1: no memory. */
static int
keep(Draft *draft, PyObject *object)
{
    Kept *kept = &draft->kept;
    if (object == NULL)
        return -1;
    if (kept->count < KEPT_FEW) {
        kept->few[kept->count++] = object;
        return 0;
    }
    if (kept->more == NULL)
        kept->more = PyList_New(0);
    int failed = kept->more == NULL || PyList_Append(kept->more, object) < 0;
    Py_DECREF(object);
    return failed ? -1 : 0;
}

static void
begin(Draft *draft, State *state)
{
    draft->state = state;
    draft->kept.count = 0;
    draft->kept.more = NULL;
    draft->place = NULL;
    draft->fields = draft->few;
    draft->room = FIELDS_FEW;
    memset(&draft->record, 0, sizeof draft->record);
    draft->record.struct_size = sizeof draft->record;
}

static void
finish(Draft *draft)
{
    if (draft->fields != draft->few)
        PyMem_Free(draft->fields);
    while (draft->kept.count > 0)
        Py_DECREF(draft->kept.few[--draft->kept.count]);
    Py_CLEAR(draft->kept.more);
}

#endif
