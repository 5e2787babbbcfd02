package import KeyStore

/// One call to Apple.
package struct AppleCall: Sendable {
    package var service: AppleService
    /// Whose host it goes to: Apple's for production, Apple's for development, or the operator's
    /// stand-in for keys of a test authority.
    package var environment: KeyEnvironment
    /// The team whose key signs the call's token; `nil` for the only one.
    package var teamID: String?
    package var body: [UInt8]
    package var contentType: String
    /// From the hand-in to the reply, waiting in the queue included.
    package var timeout: Duration

    package init(
        service: AppleService,
        environment: KeyEnvironment,
        teamID: String? = nil,
        body: [UInt8],
        contentType: String,
        timeout: Duration
    ) {
        self.service = service
        self.environment = environment
        self.teamID = teamID
        self.body = body
        self.contentType = contentType
        self.timeout = timeout
    }
}
