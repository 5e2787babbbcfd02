internal import COpenSSL

/// An object identifier of ASN.1, such as `1.2.840.113635.100.8.2`.
public struct OID: Hashable, Sendable, CustomStringConvertible {
    /// The arcs in decimal with full stops between them.
    public let description: String

    /// The object identifier of these arcs. Text that is none ends the process: identifiers are
    /// constants.
    public init(_ description: String) {
        self.description = description
        withObject { _ in }
    }

    /// Lends the identifier in OpenSSL's form.
    func withObject<Result>(_ body: (OpaquePointer) -> Result) -> Result {
        guard let object = OBJ_txt2obj(description, 1) else {
            preconditionFailure("OID: \(description) is no object identifier")
        }
        defer { ASN1_OBJECT_free(object) }
        return body(object)
    }
}
