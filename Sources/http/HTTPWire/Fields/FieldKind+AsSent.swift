extension FieldKind {
    /// The kind of a name, in any case.
    package init(name: [UInt8]) {
        self = KnownFieldNames.kind(name.span, 0..<name.count)
    }
}

extension FieldKindSet {
    /// What the origin never gets as the client sent it: removed, or written anew by the gateway.
    /// A signature over such a field says nothing about what the origin reads.
    ///
    /// `Host` is not in it: what is signed is the client's value, which also decides the rule.
    package static let neverAsSent: FieldKindSet = [
        neverToOrigin, provenance, proof, FieldKindSet([.via, .maxForwards]),
    ]
}
