"""The mutations of stores of other users: see table.py."""

from entry import SHIMS, mutation

mutation("users", "root-makes-for-root", SHIMS + "made.c",
         "    const struct stat model = {.st_uid = owner, .st_gid = group};\n",
         "    const struct stat model = {.st_uid = owner & 0, .st_gid = group & 0};\n",
         "hostile deleted", "root's host never goes on in a user's store that was deleted")
