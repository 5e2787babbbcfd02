import AppleStandIn
import Foundation

/// The stand-in for Apple's services in a process of its own, for tests that are no Swift.
///
/// It writes the section `apple` of a configuration that calls it, and then serves until it is
/// killed. Names of devices stand in their tokens: `device-token`, the environment, the name and
/// anything, a line each, in base64.
@main enum PortcullisApple {
    /// How it is to be called.
    private static let usage = "usage: portcullis-apple FOLDER TEAM [DEVICE=BIT,BIT]..."

    static func main() throws {
        let words = CommandLine.arguments.dropFirst()
        guard let folder = words.first, let teamID = words.dropFirst().first else {
            print(usage)
            exit(2)
        }
        let apple = try StandInServer(folder: folder)
        let team = StandInTeam(teamID: teamID)
        apple.add(team)
        for word in words.dropFirst(2) {
            let parts = word.split(separator: "=")
            guard parts.count == 2, ["0,0", "0,1", "1,0", "1,1"].contains(parts[1]) else {
                print(usage)
                exit(2)
            }
            apple.setBits(of: String(parts[0]), parts[1].hasPrefix("1"), parts[1].hasSuffix("1"))
        }
        let key = folder + "/key.p8"
        try Data(team.p8.utf8).write(to: URL(filePath: key))
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: key)
        let section =
            "apple:\n  keys: [{ team: \(team.teamID), key_id: \(team.keyID), file: \(key) }]\n"
            + "  roots: \(apple.rootFile)\n  hosts: { \(apple.hostSettings) }\n"
        // Whole, or not there: who waits for it reads it at once.
        try Data(section.utf8).write(to: URL(filePath: folder + "/apple.yaml"), options: .atomic)
        while true { pause() }
    }
}
