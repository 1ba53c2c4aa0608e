// The default names of secrets, whose values are replaced; hosts can add more. This is their only
// place. docs/HTTP.md lists them for people, and a test compares.

enum SecretDefaults {
    /// Headers, by name; those whose name ends in an entry of the lists below are replaced, too.
    static let headers = [
        "Authorization", "Proxy-Authorization", "Authentication-Info",
        "Proxy-Authentication-Info", "Cookie", "Cookie2", "Set-Cookie", "Set-Cookie2", "X-Api-Key",
        "X-Auth", "X-Auth-Key", "X-Functions-Key", "Ocp-Apim-Subscription-Key",
        "X-Forwarded-Authorization", "X-Original-Authorization", "X-Amz-Credential",
        "X-Amz-Signature", "X-Goog-Api-Key", "X-Vault-Token", "X-Csrf-Token", "X-Xsrf-Token",
        "Session-Id", "Sec-WebSocket-Key", "Sec-WebSocket-Protocol", "X-Authentication",
        "Captcha",
    ]

    /// Any name that ends in them: accesstoken, userPassword, client-secret. The last two are the
    /// two before them in decomposed Unicode, as compared: kana without marks, and jamo.
    static let endings = [
        "password", "passwords", "passwd", "passphrase", "passcode", "token", "secret", "secrets",
        "api_key", "apikey", "credential", "credentials", "private_key", "secret_key",
        "access_key", "authorization", "session_id", "passwort", "kennwort", "mot_de_passe",
        "contraseña", "contrasena", "senha", "wachtwoord", "lösenord", "losenord", "adgangskode",
        "salasana", "hasło", "haslo", "heslo", "jelszó", "jelszo", "şifre", "sifre", "пароль",
        "密码", "密碼", "pwd", "パスワード", "비밀번호", "ハスワート",
        "비밀번호",
    ]

    /// If they are the name, or its last words: auth, db_pass, userPin; also behind `fronts`.
    static let keys = [
        "pass", "pin", "mpin", "tpin", "auth", "cookie", "cookies", "set_cookie", "otp", "totp",
        "jwt", "bearer", "sig", "signature", "csrf", "xsrf", "cvv", "cvc", "cvv2", "card_number",
        "credit_card", "ssn", "iban", "passport_number", "password_hash", "password_confirmation",
        "secret_access_key", "signing_key", "encryption_key", "subscription_key", "account_key",
        "code_verifier", "client_assertion", "assertion", "saml_response", "saml_request",
        "session_key", "auth_code", "authorization_code", "security_answer", "recovery_code",
        "shared_access_signature", "api_tokens", "access_tokens", "auth_tokens", "refresh_tokens",
        "api_keys", "private_keys", "access_keys", "secret_string", "application_key",
        "master_key", "consumer_key", "session", "sid", "sessid", "phpsessid", "sms_code",
        "mfa_code", "otp_code", "totp_code", "tfa_code", "two_factor_code", "one_time_code",
        "verification_code", "verify_code", "confirmation_code", "activation_code", "login_code",
        "reset_code", "unlock_code", "security_code", "access_code", "pin_code", "puk", "puk_code",
        "oob_code", "device_code", "backup_code", "backup_codes", "recovery_codes", "otp_codes",
        "mnemonic", "mnemonic_phrase", "seed_phrase", "secret_phrase", "recovery_phrase",
        "backup_phrase", "auth_key", "auth_keys", "ssh_key", "storage_key", "recovery_key",
        "backup_key", "deploy_key", "shared_key", "pre_shared_key", "psk", "hmac_key", "wallet_key",
        "passkey",
    ]

    /// One or two of these may precede a name of `keys` within a word: userpin, MYSQLROOTPIN. None
    /// makes an ordinary word of it: spin, compass, inside, oauth, ssid are not secrets.
    static let fronts = [
        "account", "acct", "admin", "api", "app", "atm", "auth", "bank", "bind", "card", "client",
        "confirm", "credit", "current", "customer", "db", "device", "email", "employee", "ftp",
        "guest", "host", "http", "imap", "keystore", "ldap", "login", "logon", "mail", "mariadb",
        "master", "member", "mfa", "mobile", "mongo", "mqtt", "mssql", "my", "mysql", "new", "old",
        "oracle", "otp", "owner", "payment", "phone", "postgres", "proxy", "redis", "repeat",
        "root", "saml", "server", "service", "session", "signin", "signup", "sim", "sms", "smtp",
        "sql", "ssh", "sso", "superuser", "system", "temp", "test", "truststore", "upi", "user",
        "usr", "verify", "vpn", "web", "wifi", "wlan", "wpa",
    ]

    /// Only without anything before them: max_tokens is not a secret.
    static let wholes = ["tokens"]

    /// The same, for items of URLs and forms.
    static let items = ["key", "code", "ticket"]
}
