// Package harness lets programs of others be agents: Claude Code, Codex, Gemini CLI, opencode, goose, and any other program that speaks the
// Agent Client Protocol as an agent.
//
// A [Setting] says which program an agent is, and a [Program] is that program on this machine. [Program.Answer] starts it in the sandbox, asks it one
// question, and stops it. What the program asks to be allowed is judged as a call of a tool of this program; what it asks to be done, with
// files and in terminals, is done by these tools. What happens meanwhile are events, and what must not be lost is on record: the id of the
// session before the first prompt, what it has cost, finished calls, and the answer. So a turn that was interrupted resumes in the session
// that the program keeps.
package harness
