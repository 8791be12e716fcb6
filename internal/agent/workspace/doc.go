// Package workspace reads what a directory tells models: the files with instructions that authors put there for agents, such as
// AGENTS.md.
//
// A workspace is the repository around the working directory, or that directory itself. Its instructions are those of the user, a
// file in the configuration directory, and then one file of each directory from the root of the workspace down to the working
// directory. Files further below come when a model first works there. A file of the workspace counts only while the user trusts
// it as it is, byte for byte.
package workspace
