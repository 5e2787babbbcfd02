import AppAttest
import Foundation

// A server that has nothing but AppAttest, which then has no OpenSSL: Tests/Sample/run checks what
// this program is linked with. It verifies every vector in the folders of its arguments, and each
// assertion again with each of its bytes damaged.

/// A vector of the repository, `name: value` lines and base64, or a shared one in JSON.
struct Vector {
    let id: String
    let object: Data
    private var values: [String: String] = [:]

    init(_ file: URL, kind: String) throws {
        id = file.deletingPathExtension().lastPathComponent
        var text = ""
        if file.pathExtension == "json" {
            let members = try JSONSerialization.jsonObject(with: Data(contentsOf: file))
            for (name, value) in members as? [String: Any] ?? [:] {
                let name = name.replacingOccurrences(of: "_b64", with: "")
                values[name.replacingOccurrences(of: "_", with: "-")] = value as? String
            }
            text = values[kind] ?? ""
        } else {
            let parts = try String(contentsOf: file, encoding: .utf8).components(
                separatedBy: "\n\n"
            )
            for line in parts[0].split(separator: "\n") {
                let pair = line.split(separator: ":", maxSplits: 1)
                values[String(pair[0])] = pair[1].trimmingCharacters(in: .whitespaces)
            }
            text = parts[1].filter { !$0.isWhitespace }
            values["public-key-x963"] = values["public-key"]
        }
        object = Data(base64Encoded: text) ?? Data()
    }

    subscript(name: String) -> String { values[name] ?? "" }

    var clientDataHash: Data { Data(base64Encoded: self["client-data-hash"]) ?? Data() }
    var isSoftware: Bool { values["expect"] != nil }

    func key() throws -> P256PublicKey {
        guard let bytes = Data(base64Encoded: self["public-key-x963"]),
            let key = P256PublicKey(x963: bytes)
        else { throw CocoaError(.fileReadCorruptFile) }
        return key
    }
}

let root = try X509Certificate.certificates(
    pem: String(contentsOfFile: CommandLine.arguments[1] + "/software-root.pem", encoding: .utf8)
)

/// Each kind of object, verified with what its vector says.
let verifiers: [(kind: String, verify: (Vector, Data) throws -> Void)] = [
    (
        "attestation",
        { vector, object in
            guard let keyID = KeyID(base64: vector["key-id"]),
                let time = UnixTime(iso8601: vector["verify-at"]),
                let environment = AttestationEnvironment(rawValue: vector["environment"])
            else { throw CocoaError(.fileReadCorruptFile) }
            let app = ExpectedApp(
                id: vector["app-id"],
                environments: [environment],
                isMacOS: false,
                builds: .any
            )
            _ = try UnverifiedAttestation(bytes: object).verified(
                clientDataHash: vector.clientDataHash,
                keyID: keyID,
                apps: [app],
                roots: vector.isSoftware ? root : [AppleRoots.appAttestation],
                at: time
            )
        }
    ),
    (
        "assertion",
        { vector, object in
            _ = try UnverifiedAssertion(bytes: object).verified(
                clientDataHash: vector.clientDataHash,
                key: vector.key(),
                app: AppIDHash(appID: vector["app-id"]),
                after: .zero
            )
        }
    ),
    (
        "receipt",
        { vector, object in
            _ = try UnverifiedReceipt(bytes: object).verified(
                appIDs: [vector["app-id"]],
                key: vector.key(),
                roots: vector.isSoftware ? root : [AppleRoots.rootG3],
                freshness: nil
            )
        }
    ),
]

var (accepted, refused) = (0, 0)
for folder in CommandLine.arguments.dropFirst() {
    for (kind, verify) in verifiers {
        let place = URL(filePath: folder).appending(path: kind + "s")
        let files = try FileManager.default.contentsOfDirectory(
            at: place,
            includingPropertiesForKeys: nil
        )
        for file in files where ["json", "txt"].contains(file.pathExtension) {
            let vector = try Vector(file, kind: kind)
            do {
                try verify(vector, vector.object)
                accepted += 1
            } catch {
                print("\(kind) \(vector.id) is refused: \(error)")
                exit(1)
            }
            // An attestation does not cover its receipt, nor a receipt what stands beside the
            // signature. The rest of an assertion is signed.
            guard kind == "assertion" else { continue }
            for index in vector.object.indices {
                var damaged = vector.object
                damaged[index] ^= 1
                guard (try? verify(vector, damaged)) == nil else {
                    print("\(kind) \(vector.id) is accepted with byte \(index) damaged")
                    exit(1)
                }
                refused += 1
            }
        }
    }
}
print("accepted: \(accepted) vectors; refused: \(refused) damaged ones")
