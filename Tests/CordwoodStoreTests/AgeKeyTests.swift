// Keys of age: Bech32 by the vectors of BIP 173, recipients and identities as users may enter them,
// and that no error repeats a secret.

import XCTest

@testable import CordwoodStore

/// The example of the specification (c2sp.org/age).
enum ExampleKey {
    static let identity =
        "AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX"
    static let recipient = "age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj"
}

final class AgeKeyTests: XCTestCase {
    func testBech32TakesWhatBIP173CallsValid() throws {
        let valid = [
            "A12UEL5L", "a12uel5l",
            "an83characterlonghumanreadablepartthatcontainsthenumber1andtheexcludedcharactersbio"
                + "1tt5tgs",
            "abcdef1qpzry9x8gf2tvdw0s3jn54khce6mua7lmqqqxw",
            "11" + String(repeating: "q", count: 82) + "c8247j",
            "split1checkupstagehandshakeupstreamerranterredcaperred2y9e3w", "?1ezyfcl",
        ]
        for text in valid {
            let (prefix, data) = try Bech32.decode(text.utf8)
            XCTAssertEqual(prefix, String(text.lowercased().prefix(prefix.count)))
            if data.count * 8 % 5 == 0 {
                XCTAssertEqual(Bech32.encode(prefix, data), text.lowercased())
            }
        }
    }

    func testBech32RefusesWhatBIP173CallsInvalid() {
        let invalid: [(String, Bech32.Problem)] = [
            (" 1nwldj5", .character), ("\u{7f}1axkwrx", .character), ("pzry9x0s0muk", .separator),
            ("1pzry9x0s0muk", .separator), ("x1b4n0q5v", .character), ("li1dgmt3", .separator),
            ("A1G7SGD8", .checksum), ("10a06t8", .separator), ("1qzzfhee", .separator),
            ("A12uEL5L", .mixedCase), ("", .separator),
        ]
        for (text, problem) in invalid {
            XCTAssertThrowsError(try Bech32.decode(text.utf8), text) {
                XCTAssertEqual($0 as? Bech32.Problem, problem, text)
            }
        }
    }

    func testEveryMistypedCharacterIsFound() throws {
        let letters = Array("qpzry9x8gf2tvdw0s3jn54khce6mua7l".utf8)
        let whole = Array(ExampleKey.recipient.utf8)
        for index in 4..<whole.count {
            for letter in letters where letter != whole[index] {
                var text = whole
                text[index] = letter
                XCTAssertThrowsError(try AgeRecipient(String(decoding: text, as: UTF8.self)))
            }
        }
    }

    func testTheExampleOfTheSpecification() throws {
        let identity = try AgeIdentity(ExampleKey.identity.utf8)
        XCTAssertEqual(identity.recipient.text, ExampleKey.recipient)
        XCTAssertEqual(identity.secretText, ExampleKey.identity)
        XCTAssertEqual(try AgeRecipient(ExampleKey.recipient), identity.recipient)
    }

    func testNewIdentitiesDiffer() throws {
        let first = AgeIdentity.generate()
        let second = AgeIdentity.generate()
        XCTAssertNotEqual(first.recipient, second.recipient)
        XCTAssertEqual(try AgeIdentity(first.secretText.utf8).recipient, first.recipient)
    }

    func testListsOfRecipients() throws {
        let texts = (0..<3).map { _ in AgeIdentity.generate().recipient.text }
        for separator in [" ", ",", ", ", "\n", " ,\t"] {
            let found = try AgeRecipient.list(texts.joined(separator: separator) + separator)
            XCTAssertEqual(found.map(\.text), texts)
        }
        XCTAssertEqual(try AgeRecipient.list(texts[0] + " " + texts[0]).count, 1)
    }

    private func refusal(_ text: String) -> String {
        do throws(AgeError) {
            _ = try AgeRecipient.list(text)
            return ""
        } catch .argument(let what) {
            return what
        } catch {
            return "\(error)"
        }
    }

    func testBadRecipientsAreRefusedWithWhatIsWrong() {
        let recipient = ExampleKey.recipient
        let zero = Bech32.encode("age", [UInt8](repeating: 0, count: 32))
        let short = Bech32.encode("age", [UInt8](repeating: 9, count: 31))
        let cases = [
            ("", "no recipient"), (" , ", "no recipient"), ("bob@example.org", "begins with age1"),
            (ExampleKey.identity, "secret key"), (ExampleKey.identity.lowercased(), "secret key"),
            (recipient.dropLast() + "q", "checksum"), (recipient.uppercased(), "no key"),
            (recipient.prefix(20) + "", "checksum"), ("age1", "cut"), (zero, "hides nothing"),
            (short, "cut"),
            (
                "age1yubikey1qwt50d05nh5vutpdzmlg5wn80xq5negm4uj9ghv0snvdd3yysf5yw3rhl3t",
                "no X25519"
            ),
            ("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA", "begins with age1"),
            ("\(recipient) nonsense", "begins with age1"),
        ]
        for (text, expected) in cases {
            let said = refusal(String(text))
            XCTAssertTrue(said.contains(expected), "\(text): \(said)")
            XCTAssertFalse(said.uppercased().contains("GFPYYSJ"), "a secret is shown: \(said)")
        }
        let many = (0..<65).map { _ in AgeIdentity.generate().recipient.text }
        XCTAssertTrue(refusal(many.joined(separator: " ")).contains("more than 64"))
    }

    private func problem(_ file: String) -> String {
        do throws(AgeError) {
            _ = try AgeIdentity.parse(Array(file.utf8), "key.txt")
            return ""
        } catch .argument(let what) {
            return what
        } catch {
            return "\(error)"
        }
    }

    func testIdentityFiles() throws {
        let other = AgeIdentity.generate()
        let text =
            "# created: now\r\n\n# public key: x\n\(ExampleKey.identity)\r\n\(other.secretText)"
        let found = try AgeIdentity.parse(Array(text.utf8), "key.txt")
        XCTAssertEqual(found.map(\.recipient.text), [ExampleKey.recipient, other.recipient.text])
        let secret = ExampleKey.identity
        let cases = [
            ("", "holds no identity"), ("# nothing\n", "holds no identity"),
            ("# one\n" + secret.dropLast() + "Q", "line 2: the secret key has a wrong checksum"),
            (secret.lowercased(), "line 1: not an X25519 identity"),
            (" " + secret, "line 1: not an X25519 identity"),
            (ExampleKey.recipient, "line 1: not an X25519 identity"),
            ("AGE-PLUGIN-YUBIKEY-1QQQQ", "line 1: not an X25519 identity"),
            ("age-encryption.org/v1\n-> scrypt", "encrypted itself"),
            ("-----BEGIN AGE ENCRYPTED FILE-----\n", "encrypted itself"),
        ]
        for (file, expected) in cases {
            let said = problem(String(file))
            XCTAssertTrue(said.contains(expected), "\(said) for \(file)")
            XCTAssertFalse(said.uppercased().contains("GFPYYSJ"), "a secret is shown: \(said)")
        }
    }

    func testIdentityFilesThatCannotBeRead() {
        XCTAssertThrowsError(try AgeIdentity.file("/nowhere/key.txt")) {
            guard case .system(_, let number)? = $0 as? AgeError else { return XCTFail("\($0)") }
            XCTAssertEqual(number, 2)
        }
        XCTAssertThrowsError(try AgeIdentity.file("/dev/zero")) {
            guard case .argument? = $0 as? AgeError else { return XCTFail("\($0)") }
        }
    }
}
