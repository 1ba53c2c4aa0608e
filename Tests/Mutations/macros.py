"""The mutations of what C++ macros refuse, and when they evaluate: see table.py."""

from entry import mutation

CPP = "include/cordwood/cordwood_"
mutation("macro", "unused-argument-compiles", CPP + "check.hpp",
         "            if (((used_ >> i) & 1) == 0) {\n", "            if (false) {\n",
         "consumers test_macros.MacroTest.test_wrong",
         "printf's %d in a brace format loses its argument from the text")
mutation("macro", "type-is-not-compared", CPP + "check.hpp",
         "        if (type != '\\0' && !is_one_of(type, types)) {\n",
         "        if (type == '\\x01' && !is_one_of(type, types)) {\n",
         "consumers test_macros.MacroTest.test_wrong",
         "{:d} of a text compiles, and its records hold the format and the argument")
mutation("macro", "width-of-any-type", CPP + "check.hpp",
         "            return fail(mistake::width, index);\n", "            return take(\"}\");\n",
         "consumers test_macros.MacroTest.test_checker_and_library_agree",
         "a double as a width compiles, and the library refuses the place")
mutation("macro", "evaluates-when-off", CPP + "macros.hpp",
         "cw_level_ + 1u > CW_MIN_LEVEL && cw_enabled(cw_logger_, cw_level_)) {              \\\n",
         "cw_level_ + 1u > CW_MIN_LEVEL && cw_logger_) {                                     \\\n",
         "consumers test_macros.MacroTest.test_right",
         "a disabled level costs its arguments, and their side effects happen")
mutation("macro", "places-are-shared", CPP + "macros.hpp",
         '__attribute__((always_inline, visibility("hidden"))) inline void\n',
         "__attribute__((always_inline)) inline void\n",
         "consumers test_macros.MacroTest.test_places_belong_to_their_module",
         "a module that is unloaded leaves its place to another, and stays loaded for it")
mutation("macro", "list-overruns", CPP + "values.hpp",
         "            count = sizeof bytes_ - mark - size_;\n",
         "            count = sizeof bytes_ - size_;\n",
         "consumers test_macros.MacroTest.test_right", "a cut list overruns its buffer")
mutation("macro", "half-a-pair-is-a-character", CPP + "json.hpp",
         "(first == 0xED && second > 0x9F) ||", "(first == 0xED && second > 0xBF) ||",
         "consumers test_json_fields.JSONFieldTest.test_values",
         "a list with a text that is no UTF-8 is no JSON, and shown as a string")
