import Foundation
import Glibc
import LoopbackSockets
import Synchronization

/// The gateways that a server has started, so that none outlives it.
final class RunningGateways: Sendable {
    private struct State {
        var isClosed = false
        /// Processes whose status is still to be fetched.
        var processes: Set<pid_t> = []
        /// What cases keep their files in.
        var folders: Set<String> = []
    }

    private let state = Mutex(State())

    /// Starts a process, unless all is over.
    ///
    /// - start: called with no other start or end beside it.
    func start(_ start: () throws(ToolError) -> pid_t) throws(ToolError) -> pid_t {
        let result = state.withLock { state -> Result<pid_t, ToolError> in
            guard !state.isClosed else { return .failure(ToolError("the server ends")) }
            do throws(ToolError) {
                let process = try start()
                state.processes.insert(process)
                return .success(process)
            } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }

    /// Waits for the end of a process that closed its output, and fetches its status where
    /// ``close()`` has not.
    func fetchEnd(of process: pid_t) {
        var found = siginfo_t()
        while waitid(P_PID, id_t(process), &found, WEXITED | WNOWAIT) < 0, errno == EINTR {}
        // From here on its number may be another process's.
        state.withLock { state in
            var status: Int32 = 0
            while waitpid(process, &status, 0) < 0, errno == EINTR {}
            state.processes.remove(process)
        }
    }

    func kill(_ process: pid_t) {
        state.withLock { state in
            guard state.processes.contains(process) else { return }
            _ = Glibc.kill(process, SIGKILL)
        }
    }

    /// Takes a folder that goes with the server; `false` where all is over.
    func add(folder: URL) -> Bool {
        state.withLock { state in
            guard !state.isClosed else { return false }
            state.folders.insert(folder.path)
            return true
        }
    }

    /// Removes a case's folder, before any other end of it goes on: two at once would disturb each
    /// other.
    func remove(folder: URL) {
        state.withLock { state in
            guard state.folders.remove(folder.path) != nil else { return }
            try? FileManager.default.removeItem(at: folder)
        }
    }

    /// Ends all processes as a crash does, removes all folders, and lets nothing start any more.
    /// When it returns, none runs.
    func close() {
        state.withLock { state in
            state.isClosed = true
            for process in state.processes { _ = Glibc.kill(process, SIGKILL) }
            for process in state.processes {
                while waitpid(process, nil, 0) < 0, errno == EINTR {}
            }
            state.processes = []
            for folder in state.folders { try? FileManager.default.removeItem(atPath: folder) }
            state.folders = []
        }
    }
}
