package import Foundation

/// A vector that is kept in the repository, in a text that describes itself: header lines, a blank
/// line, the object in base64.
///
///     expect: accept
///     source: SoftwareAuthenticator, seed software-vectors, made 2026-03-01
///     note: iOS 26: the leaf names the platform and has an access control list
///     app-id: ABCDE12345.com.example.shop
///     …
///
///     o2NmbXRvYXBwbGUtYXBwYXR0ZXN0…
package struct VectorFile {
    /// A line that no reader understands, or a file that is none.
    package struct Malformed: Error, CustomStringConvertible {
        package let description: String

        package init(description: String) {
            self.description = description
        }
    }

    /// The lines before the blank one, in order.
    package let header: [(name: String, value: String)]
    /// The object, in base64 without line breaks.
    package let object: String

    /// A file to be written.
    package init(header: [(name: String, value: String)], object: String) {
        self.header = header
        self.object = object
    }

    /// Reads a file. A header that is not in ``members`` is refused: a misspelled one would test
    /// nothing.
    package init(_ text: String) throws {
        let parts = text.split(separator: "\n\n", maxSplits: 1)
        guard parts.count == 2 else { throw Malformed(description: "no blank line") }
        header = try parts[0].split(separator: "\n").map { line in
            let pair = line.split(separator: ":", maxSplits: 1)
            guard pair.count == 2, pair[1].hasPrefix(" ") else {
                throw Malformed(description: "not `name: value`: \(line)")
            }
            let name = String(pair[0])
            guard Self.members[name] != nil else {
                throw Malformed(description: "unknown header: \(name)")
            }
            return (name, String(pair[1].dropFirst()))
        }
        let names = header.map(\.name)
        guard Set(names).count == names.count else {
            throw Malformed(description: "a header occurs twice")
        }
        object = parts[1].split(separator: "\n").joined()
    }

    /// The file's text.
    package var text: String {
        var text = header.map { "\($0.name): \($0.value)\n" }.joined() + "\n"
        var rest = object[...]
        while !rest.isEmpty {
            text += rest.prefix(76) + "\n"
            rest = rest.dropFirst(76)
        }
        return text
    }

    /// The headers that are known, each with the member of the shared vectors that says the same;
    /// "" for those that are for people and for the tests of the files themselves.
    private static let members: [String: String] = [
        "expect": "", "source": "", "note": "",
        "app-id": "app_id", "environment": "environment", "key-id": "key_id",
        "public-key": "public_key_x963_b64", "client-data": "client_data_b64",
        "client-data-hash": "client_data_hash_b64",
        "hash-formed-as": "client_data_hash_formed_as", "challenge": "challenge_b64",
        "verify-at": "verify_at", "leaf-not-before": "leaf_not_before",
        "leaf-not-after": "leaf_not_after", "os-version": "os_version", "os-build": "os_build",
        "platform": "platform", "access-control": "acl_blob_b64", "counter": "counter",
        "category": "apple_validation_category_01", "bundle-version": "apple_bundle_version_01",
        "receipt-chain": "chain_to_apple_root_ca_g3", "receipt-type": "receipt_type",
        "creation-time": "creation_time", "risk-metric": "risk_metric",
        "not-before": "not_before", "expiration": "expiration",
    ]

    /// The vector as the shared ones are written, in JSON.
    ///
    /// - Parameters:
    ///   - id: its name.
    ///   - kind: `attestation`, `assertion` or `receipt`.
    /// - Returns: the vector as a JSON object.
    /// - Throws: what `JSONSerialization` throws.
    package func json(id: String, kind: String) throws -> Data {
        var members: [String: Any] = ["id": id, kind + "_b64": object]
        var extensions: [String: String] = [:]
        for (name, value) in header {
            switch (name, Self.members[name]) {
            case (_, nil), (_, ""): break
            case ("counter", let member?): members[member] = Int(value)
            case ("category", let member?), ("bundle-version", let member?):
                extensions[member] = value
            case ("receipt-chain", let member?):
                members["checked"] = ["receipt": [member: value == "good"]]
            case (_, let member?): members[member] = value
            }
        }
        if !extensions.isEmpty {
            let place =
                kind == "assertion" ? "authenticator_data_extensions" : "auth_data_extensions"
            members[place] = extensions
        }
        return try JSONSerialization.data(withJSONObject: members)
    }
}
