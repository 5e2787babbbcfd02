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
        enrolling(
            below: path,
            challenges: ChallengeService(enrolment: enrolment),
            keys: KeyService(enrolment: enrolment, store: { keys.enrol($0, completion: $1) })
        )
    }

    /// The same table for programs that only ask which requests the gateway answers itself.
    package static func unserved(below path: String) -> ServiceTable {
        enrolling(below: path, challenges: UnservedService(), keys: UnservedService())
    }

    private static func enrolling(
        below path: String,
        challenges: some Service,
        keys: some Service
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
                    challenges
                ),
                ServiceEntry(
                    "keys",
                    [.post],
                    takesContent: true,
                    cost: .verification,
                    keys
                ),
            ],
            unknown: .endpointUnknown,
            wrongMethod: .methodNotAllowed,
            listsPaths: false
        )
    }
}
