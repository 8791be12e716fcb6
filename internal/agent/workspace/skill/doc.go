// Package skill finds and reads skills: directories with a file SKILL.md, whose front matter says what the skill is for and whose
// text says how the work is done. The format is that of agentskills.io.
//
// Models get the names and descriptions, and load the text of a skill when a task needs it. Skills of a workspace count only while
// the user trusts each file of their directory as it is.
package skill
