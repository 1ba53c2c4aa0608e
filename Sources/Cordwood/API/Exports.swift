// What of the rooms below belongs to the public API of this module: hosts import Cordwood alone.

@_exported import enum CordwoodCore.FieldValue
@_exported import enum CordwoodCore.JSONLine
@_exported import enum CordwoodCore.ReadProblem
@_exported import struct CordwoodCore.RecordFields
@_exported import struct CordwoodCore.RecordFlags
@_exported import struct CordwoodCore.RecordRef
@_exported import enum CordwoodCore.TextLine
@_exported import enum CordwoodShip.Codec
@_exported import enum CordwoodShip.Consent
@_exported import struct CordwoodShip.RegisteredTarget
@_exported import struct CordwoodShip.TargetOptions
@_exported import struct CordwoodShip.UploadResult
