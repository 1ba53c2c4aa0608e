"""Encrypted archives: recipients, identities, and reading without them. The keys are those of
the age specification's example."""
import os
import unittest
from pathlib import Path
from typing import List, Optional, Union

from support import StoreCase, cordwood

RECIPIENT = "age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj"
IDENTITY = "AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX"
OTHER = "AGE-SECRET-KEY-1EGTZVFFV20835NWYV6270LXYVK2VKNX2MMDKWYKLMGR48UAWX40Q2P2LM0"


class EncryptTest(StoreCase):
    """open(encrypt_to=…, identity_file=…) and read(identity=…)."""

    def key(self, content: str, name: str = "key.txt") -> str:
        """Writes an identity file."""
        path = Path(self.store).parent / name
        path.write_text(content + "\n")
        return str(path)

    def archived(self, **options: object) -> None:
        """Makes an archive of two records."""
        engine = self.open(**options)
        engine.logger("a").info("one")
        engine.logger("a").info("two")
        engine.roll()
        while engine.stats().archives_written == 0:
            os.sched_yield()

    def found(self, identity: Optional[str]) -> "tuple[int, int, int]":
        """The numbers of records, of archives that stay closed, and of damaged places."""
        with cordwood.read(self.store, logger="a", identity=identity) as reader:
            return sum(1 for _ in reader), reader.encrypted, reader.damaged

    def test_with_a_key_with_another_and_with_none(self) -> None:
        self.archived(encrypt_to=RECIPIENT)
        self.assertEqual(self.found(None), (0, 1, 0))
        self.assertEqual(self.found(self.key(OTHER)), (0, 1, 0))
        self.assertEqual(self.found(self.key(IDENTITY)), (2, 0, 0))
        self.assertEqual(self.found(self.key(f"# both\n{OTHER}\n{IDENTITY}")), (2, 0, 0))

    def test_several_recipients(self) -> None:
        other = "age1cy0su9fwf3gf9mw868g5yut09p6nytfmmnktexz2ya5uqg9vl9sss4euqm"
        for recipients in ([RECIPIENT, other], f"{other}, {RECIPIENT}"):
            with self.subTest(recipients=recipients):
                self.archived(encrypt_to=recipients)
                found, _, damaged = self.found(self.key(IDENTITY))
                self.assertEqual((found % 2, damaged), (0, 0))

    def test_bad_keys_are_refused(self) -> None:
        bad: List[Union[str, List[str]]] = ["", "bob", IDENTITY, RECIPIENT[:-1] + "q", []]
        for recipient in bad:
            with self.assertRaises(cordwood.ArgumentError) as caught:
                cordwood.open(self.store, encrypt_to=recipient)
            self.assertEqual(caught.exception.status_name, "CW_E_ARGUMENT")
            self.assertNotIn("GFPYYSJ", str(caught.exception).upper())
        with self.assertRaises(cordwood.NotFoundError):
            cordwood.open(self.store, identity_file="/nowhere/at/all")
        self.archived()
        with self.assertRaises(cordwood.ArgumentError):
            cordwood.read(self.store, identity=self.key("nonsense"))

    def test_a_file_that_says_nothing_without_its_key(self) -> None:
        path = Path(self.store).parent / "bare.cwa"
        path.write_bytes(b"""age-encryption.org/v1
-> X25519 TEiF0ypqr+bpvcqXNyCVJpL7OuwPdVwPL7KQEbFDOCc
EmECAEcKN+n/Vs9SbWiV+Hu0r+E8R77DdWYyd83nw7U
--- Vn+54jqiiUCE+WZcEVY3f1sqHjlu/z1LCQ/T7Xm7qI0
""" + bytes(50))
        with self.assertRaises(cordwood.EncryptedError) as caught:
            cordwood.read(path)
        self.assertEqual(caught.exception.status_name, "CW_E_ENCRYPTED")


if __name__ == "__main__":
    unittest.main()
