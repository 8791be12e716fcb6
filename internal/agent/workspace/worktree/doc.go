// Package worktree gives agents copies of a repository to work in.
//
// A worktree has a git directory of its own, which borrows the objects of the source, the repository that it was made from. So
// a commit in it writes nothing in the source, and a model that can write in its worktree can neither delete nor change a branch of
// the user. Its work is on the branch loki/NAME. What is kept or merged is copied into the source at the end.
//
// Git runs here in two ways. In a worktree, where models may have changed everything, it is confined to that directory. In the
// source it is not, and there no setting of the repository makes it run another program.
package worktree
