// Package fleet lets models on several devices learn as one.
//
// Each member of a fleet publishes a Contribution: the natural parameters that its own
// labels have taught it, with the basis in which they are written. They hold nothing that
// the member received from others. A receiver keeps the newest version of each member in a
// Set, projects every contribution on its own basis and adds them: the result depends on
// the set alone, not on the order, the repetition or the loss of messages, and a member
// that leaves is forgotten to the last bit. A Merge is the sum with the decisions that
// led to it, in the form in which it is journalled.
//
//	A_k = Σ s1·w·wᵀ,  b_k = Σ s2·w      of a member, over absorbed sites and window
//	T   = L_i⁻¹ c_j(Z_i, Z_j) L_j⁻ᵀ     from the member's basis i to the receiver's j
//	E_k = Σ_i TᵀA_ik·T,  e_k = Σ_i Tᵀb_ik
//	P_k = I + A_jk + E_k                precision of the fleet's horizon
//
// A receiver with labels of its own tests each contribution by them; one without compares
// three members or more with each other.
//
// A contribution has the member's forest as well, where there is one, and a merge those of
// the members that are taken: forests are not added, their answers are averaged
// (model.MemberForests). Own labels teach its leaves by the error of that mean, so that a forest
// depends on those of the others as well. A Gaussian factor holds the evidence of own labels
// about the exponents of a member's blends, and a merge has the product of those of members with
// the receiver's horizons and experts. It depends on others as far as the experts do.
//
// The package knows neither the network nor the learner.
//
// References: Hasenclever et al., "Distributed Bayesian learning with stochastic natural
// gradient expectation propagation and the posterior server" (JMLR 2017); Bui, Nguyen &
// Turner, "Streaming sparse Gaussian process approximations" (NeurIPS 2017), for the
// projection; Shapiro et al., "Conflict-free replicated data types" (2011), for the set.
package fleet
