import Testing

/// The app's half before the real gateway, with a device that fails as a script says. Each scenario
/// counts the keys that were made and the attestations that Apple was asked for.
///
/// They are serialized: each starts a gateway, and many send a crowd of requests.
@Suite(.serialized, .enabled(if: ClientStand.isPossible)) enum ClientScenarios {}
