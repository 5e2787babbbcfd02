#if canImport(DeviceCheck)
    import DeviceCheck
    import Foundation

    extension AttestationServiceError {
        /// What an error of Apple's framework is here.
        init(translating error: any Error) {
            guard let error = error as? DCError else {
                self = .unknownSystemFailure
                return
            }
            switch error.code {
            case .featureUnsupported: self = .featureUnsupported
            case .invalidInput: self = .invalidInput
            case .invalidKey: self = .invalidKey
            case .serverUnavailable: self = .serverUnavailable
            case .unknownSystemFailure: self = .unknownSystemFailure
            @unknown default: self = .unknownSystemFailure
            }
        }
    }
#endif
