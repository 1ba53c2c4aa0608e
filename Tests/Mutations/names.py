"""The mutations of the names of secrets in captured exchanges: see table.py."""

from entry import mutation

NAMES = "Sources/CordwoodTrace/HTTP/Redaction/SecretNames.swift"

mutation("names", "case-is-ascii", NAMES,
         "                return endsFolded(name)\n", "                continue\n",
         "swift SecretListTests/testCaseBeyondASCII", "the value of ПАРОЛЬ is kept")
mutation("names", "accents-are-letters", NAMES,
         "guard !(0x300...0x36F).contains(value), !(0x3099...0x309A).contains(value) else {\n",
         "guard !(0x3099...0x309A).contains(value) else {\n",
         "swift SecretListTests/testCaseBeyondASCII", "contraseña in two pieces is another name")
mutation("names", "one-way-of-case", NAMES,
         "        let upper = lower.properties.uppercaseMapping.unicodeScalars.first ?? lower\n",
         "        let upper = lower\n",
         "swift SecretListTests/testCaseBeyondASCII", "the last letter of κωδικός has two forms")
mutation("names", "sharp-s-has-two", NAMES,
         "        let lower = properties.lowercaseMapping.unicodeScalars.first ?? self\n",
         "        let lower = self\n",
         "swift SecretListTests/testCaseBeyondASCII", "GROẞE is not große")
mutation("names", "marks-are-letters", NAMES,
         "guard !(0x300...0x36F).contains(value), !(0x3099...0x309A).contains(value) else {\n",
         "guard !(0x300...0x36F).contains(value) else {\n",
         "swift SecretListTests/testCaseBeyondASCII", "decomposed kana are another name")
mutation("names", "no-fronts", NAMES,
         "                || follows(name, at, fronts: NameTable.frontsMax)\n", "",
         "swift SecretListTests/testFrontsOfNames", "the value of userpin is kept")
mutation("names", "fronts-begin-anywhere", NAMES,
         "            if NameTable.beginsWord(name, index) { return true }\n",
         "            return true\n",
         "swift SecretListTests/testFrontsOfNames", "a name that only ends so is a secret's")
mutation("names", "fronts-of-all", NAMES,
         "        for name in names { table.add(name, .word) }\n",
         "        for name in names { table.add(name, .behindFront) }\n",
         "swift SecretListTests/testFrontsOfNames", "the value of userdata is replaced")
