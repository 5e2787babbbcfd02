import LoopbackKit

/// Two origins that take no connection, and the rules that lead to them: `/refused`, `/deaf`.
struct DeadOrigins {
    private let deaf: DeafPort
    private let refusing: RefusingPort
    /// For a configuration, in YAML that is indented.
    let origins: String

    let rules = """
        - { id: refusing, match: { path: /refused }, origin: nobody, mode: off }
        - { id: deaf, match: { path: /deaf }, origin: deaf, mode: off }
        """

    init() throws {
        deaf = try DeafPort()
        refusing = try RefusingPort()
        origins = """
              nobody: { servers: ["\(refusing.address)"] }
              deaf: { servers: ["\(deaf.address)"] }
            """
    }
}
