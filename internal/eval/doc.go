// Package eval judges a model on data files, without a broker.
//
// Evaluation has four policies: prequential (each row is judged before it is
// learnt, eval.go), held out (learn a part, judge the others, heldout.go), delayed
// (labels come late or never, delayed.go) and active (only labels that a strategy
// asks for, active.go). A prequential evaluation and a daemon that has received the
// same rows end with the same digest.
//
// Training (train.go) learns a file offline by many passes and writes a state file;
// Prediction (predict.go) answers the rows of a file by a state file.
package eval
