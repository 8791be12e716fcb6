package escapetest

// foreignAttempts are for amd64: a process of arm64 cannot make calls of 32 bits without becoming one.
var foreignAttempts = map[string]attempt{}
