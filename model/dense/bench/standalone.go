package dense

// vectorised stands for the variable of edge/model/dense: this file is not part of
// the overlay.
var vectorised bool
