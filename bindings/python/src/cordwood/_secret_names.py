"""Tells from a header's name whether its value is a secret: the hooks must keep values that the
engine replaces in exchanges out of log records. The rules are those of the engine's SecretNames
(docs/HTTP.md, "Names"). Its lists must not have more than these; a test compares them. Pure.
"""
import re
from typing import Iterable, List, Set

# Also within a word.
_ENDINGS = """password passwords passwd passphrase passcode token tokens secret secrets secretstring
    apikey apikeys credential credentials privatekey privatekeys secretkey accesskey accesskeys
    authorization sessionid applicationkey masterkey consumerkey phpsessid captcha passwort
    kennwort motdepasse contraseña contrasena senha wachtwoord lösenord losenord adgangskode
    salasana hasło haslo heslo jelszó jelszo şifre sifre пароль 密码 密碼 pwd パスワード
    비밀번호 ハスワート \u1107\u1175\u1106\u1175\u11af\u1107\u1165\u11ab\u1112\u1169""".split()
# At the start of a word.
_WORDS = """authenticationinfo cookie2 setcookie setcookie2 xauth xauthkey authkey functionskey
    ocpapimsubscriptionkey websocketkey websocketprotocol xauthentication session sid sessid
    pass pin mpin tpin auth cookie cookies otp totp jwt bearer sig signature
    csrf xsrf cvv cvc cvv2 cardnumber creditcard ssn iban
    passportnumber passwordhash passwordconfirmation secretaccesskey signingkey encryptionkey
    subscriptionkey accountkey codeverifier clientassertion assertion samlresponse samlrequest
    sessionkey authcode authorizationcode securityanswer recoverycode
    sharedaccesssignature smscode mfacode otpcode totpcode tfacode twofactorcode onetimecode
    verificationcode verifycode confirmationcode activationcode logincode resetcode unlockcode
    securitycode accesscode pincode puk pukcode oobcode devicecode backupcode backupcodes
    recoverycodes otpcodes mnemonic mnemonicphrase seedphrase secretphrase recoveryphrase
    backupphrase authkey authkeys sshkey storagekey recoverykey backupkey deploykey sharedkey
    presharedkey psk hmackey walletkey passkey""".split()
# These may precede one of _WORDS within a word.
_FRONTS = """account acct admin api app atm auth bank bind card client confirm credit current
    customer db device email employee ftp guest host http imap keystore ldap login logon mail
    mariadb master member mfa mobile mongo mqtt mssql my mysql new old oracle otp owner payment
    phone postgres proxy redis repeat root saml server service session signin signup sim sms smtp
    sql ssh sso superuser system temp test truststore upi user usr verify vpn web wifi wlan
    wpa""".split()
_FRONTS_MAX = 2
_PIECES = re.compile("[A-Z]+(?![a-z])|[A-Z]?[a-z\u0080-\U0010ffff]+|[0-9]+")


def _fold(name: str) -> str:
    """Without regard to case, and to accents and sound marks that are characters themselves."""
    return "".join(letter.lower()[0].upper()[0].lower()[0] for letter in name
                   if not ("\u0300" <= letter <= "\u036f" or letter in "\u3099\u309a"))


def _is_listed(word: str, own: Set[str], fronts: int = _FRONTS_MAX) -> bool:
    return word in own or fronts > 0 and any(
        _is_listed(word[len(front):], own, fronts - 1)
        for front in _FRONTS if word.startswith(front))


def _ends(pieces: List[str], own: Set[str]) -> bool:
    whole = "".join(pieces)
    if whole.endswith(tuple(_ENDINGS)):
        return True
    return any(_is_listed("".join(pieces[at:]), own) for at in range(len(pieces)))


def is_secret(name: str, own: Iterable[str] = ()) -> bool:
    """own: further names that the host lists."""
    listed = {*_WORDS, *(_fold("".join(_PIECES.findall(one))) for one in own)}
    pieces = [_fold(piece) for piece in _PIECES.findall(name)]
    if _ends(pieces, listed):
        return True
    while pieces and pieces[-1].isdigit():  # password2
        pieces.pop()
    return _ends(pieces, listed)
