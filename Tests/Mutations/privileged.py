"""The mutations of programs with more rights than their caller: see table.py."""

from entry import SHIP, SYSTEM, mutation

mutation("privileged", "reads-the-environment", SYSTEM + "Machine.swift",
         "        isPrivileged ? nil : unsafe getenv", "        unsafe getenv",
         "processes privileged_host", "a caller chooses the store and the server of root's host")
mutation("privileged", "libcurl-finds-proxies", SHIP + "Transport/CurlOptions.swift",
         'settings.proxy ?? (Machine.isPrivileged ? "" : nil)', "settings.proxy",
         "processes privileged_host", "what a host sends goes through its caller's proxy")
mutation("privileged", "libcurl-writes-keys", "Sources/CCurl/curl.c",
         "    forget_key_log();\n", "    (void)forget_key_log;\n",
         "processes privileged_host", "libcurl makes a file, as root, where the caller says")
mutation("privileged", "python-takes-a-library", "bindings/python/src/cordwood/_abi.py",
         "    return None if getauxval(at_secure) else os", "    return os",
         "processes privileged_python", "a caller's library runs with the interpreter's rights")
