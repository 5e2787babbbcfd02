#if canImport(DeviceCheck) && canImport(Security)
    public import Foundation

    extension PortcullisSession {
        /// A session of an app with its gateway, as most apps need it: Apple's service, and a
        /// record in the Keychain.
        ///
        /// - Parameters:
        ///   - gateway: as `https://api.example.com`.
        ///   - plan: what routes ask, as `portcullis plan` wrote it; `nil` to learn it from
        ///     answers.
        public convenience init(gateway: URL, plan: SigningPlan? = nil) {
            var configuration = PortcullisConfiguration(gateway: gateway)
            configuration.plan = plan
            self.init(
                configuration,
                service: AppAttestService(),
                store: KeychainEnrolmentStore()
            )
        }
    }
#endif
