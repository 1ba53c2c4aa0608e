import XCTest
@testable import Cordwood
