// Package command is the one dispatcher of commands: what a user types, a macro says or a program
// sends to a conversation.
//
// A [Console] executes submissions on one conversation. A submission is a command, which begins with
// a dot, a shell command, which begins with an exclamation mark, or else a prompt for the model. The
// commands are a table of rows, [Command]; each knows its help, when it is offered, and what it does.
// What a command does to a conversation is a method of [conversation.Conversation], and what it does to
// files is a method of [app.App]; the commands only translate.
//
// A Console prints by its [Output] and asks by its Asker, so that it works the same in a REPL, in a
// macro, and in a test.
package command
