import HTTPWire
package import KeyStore
package import Verification

extension ServiceTable {
    /// The services of the public listeners.
    ///
    /// - path: where they are, without a slash at its end.
    package static func enrolling(
        below path: String,
        _ enrolment: Enrolment,
        _ keys: KeyTable
    ) -> ServiceTable {
        ServiceTable(
            below: path,
            elsewhere: .routed,
            [
                ServiceEntry(
                    "challenges",
                    [.post],
                    takesContent: true,
                    cost: .call,
                    ChallengeService(enrolment: enrolment)
                ),
                ServiceEntry(
                    "keys",
                    [.post],
                    takesContent: true,
                    cost: .verification,
                    KeyService(enrolment: enrolment, store: { keys.enrol($0, completion: $1) })
                ),
            ],
            unknown: .endpointUnknown,
            wrongMethod: .methodNotAllowed,
            listsPaths: false
        )
    }
}
