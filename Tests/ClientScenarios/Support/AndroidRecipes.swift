import Foundation
import LoopbackKit

/// The client for Android under OkHttp, in coroutines and from Java: Tests/AndroidRecipes.
enum AndroidRecipes {
    private static let libraries = ["okhttp", "okio"].map { "/usr/share/java/\($0).jar" }
    private static let compiler = ChildProcess.tool("javac")

    static var arePossible: Bool {
        AndroidApp.isPossible && compiler != nil
            && libraries.allSatisfy(FileManager.default.fileExists)
    }

    /// Where the programs are, compiled once.
    private static let path = Result { try compiled() }

    private static func compiled() throws -> String {
        guard let compiler else { throw ChildProcess.Failure(description: "no javac") }
        let root = AndroidApp.root
        let folder = FileManager.default.temporaryDirectory
            .appending(path: "portcullis-recipes-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let path = [try AndroidApp.archive().path, folder.path] + libraries
        let java = try ["Sources/client/android/recipes", "Tests/AndroidRecipes"].flatMap { name in
            let folder = root.appending(path: name).path
            return try FileManager.default.contentsOfDirectory(atPath: folder).sorted()
                .filter { $0.hasSuffix(".java") }.map { "\(folder)/\($0)" }
        }
        let run = try ChildProcess.run(
            compiler,
            [
                "-Xlint:all,-serial", "-Werror", "-cp", path.joined(separator: ":"), "-d",
                folder.path,
            ]
                + java,
            patience: 4 * ChildProcess.patience
        )
        guard run.status == 0 else {
            throw ChildProcess.Failure(description: run.printed + run.complained)
        }
        try AndroidApp.compile(
            ["Tests/AndroidRecipes"],
            ["-cp", path.joined(separator: ":")],
            to: folder
        )
        return path.joined(separator: ":")
    }

    /// What a program prints that sends by one of the recipes.
    static func run(_ words: [String]) throws -> String {
        let run = try AndroidApp.run("portcullis.test.RecipesKt", words, path: path.get())
        return run.printed.trimmingCharacters(in: .newlines)
            + (run.status == 0 ? "" : run.complained)
    }
}
