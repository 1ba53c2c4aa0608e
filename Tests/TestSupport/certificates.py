#!/usr/bin/env python3
"""A certificate authority for the duration of a test, made by openssl.

    certificates.py DIRECTORY

DIRECTORY gets: ca.pem; server.pem (key and certificate for 127.0.0.1 and localhost); elsewhere.pem
(the same for another host's name); client.pem (certificate), client-key.pem, client-both.pem,
client-locked.pem (the key under the password `key-password`); other-ca.pem, which signed nothing.
"""
import subprocess
import sys
from pathlib import Path

PASSWORD = "key-password"


def openssl(directory, *words):
    subprocess.run(["openssl", *words], cwd=directory, check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.PIPE)


def authority(directory, name):
    openssl(directory, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
            "-nodes", "-days", "2", "-subj", f"/CN=cordwood {name}", "-keyout", f"{name}-key.pem",
            "-out", f"{name}.pem", "-addext", "basicConstraints=critical,CA:TRUE",
            "-addext", "keyUsage=critical,keyCertSign,cRLSign")


def leaf(directory, name, names, usage):
    openssl(directory, "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-subj", f"/CN={name}", "-keyout", f"{name}-key.pem", "-out", f"{name}.csr")
    extensions = [f"extendedKeyUsage={usage}"] + ([f"subjectAltName={names}"] if names else [])
    (directory / f"{name}.ext").write_text("\n".join(extensions) + "\n")
    openssl(directory, "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey",
            "ca-key.pem", "-CAcreateserial", "-days", "2", "-extfile", f"{name}.ext", "-out",
            f"{name}-cert.pem")


def join(directory, target, *parts):
    (directory / target).write_text("".join((directory / part).read_text() for part in parts))


def make(directory):
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    authority(directory, "ca")
    authority(directory, "other-ca")
    leaf(directory, "server", "IP:127.0.0.1,DNS:localhost", "serverAuth")
    leaf(directory, "elsewhere", "DNS:elsewhere.example", "serverAuth")
    leaf(directory, "client", None, "clientAuth")
    join(directory, "server.pem", "server-key.pem", "server-cert.pem")
    join(directory, "elsewhere.pem", "elsewhere-key.pem", "elsewhere-cert.pem")
    join(directory, "client.pem", "client-cert.pem")
    join(directory, "client-both.pem", "client-cert.pem", "client-key.pem")
    openssl(directory, "pkcs8", "-topk8", "-v2", "aes-256-cbc", "-in", "client-key.pem", "-out",
            "client-locked.pem", "-passout", f"pass:{PASSWORD}")


if __name__ == "__main__":
    make(sys.argv[1])
