"""Golden vectors of one minibatch step with a site for each pair of classes.

step_pairs.py INPUT.json OUTPUT.json reads the input of a step of the merged sites
(fields as in the README of the golden vectors) and computes the step with loops over
scalars in 40 digits, the gradient by central differences with the cavities of every
pair held fixed. A merged site of the window is shared out among its pairs first. Where the
reference is "live", as after the warm-up, the samples of REFINED_STEPS steps are refined,
and of a new one 2/C of what is kept of another.
"""
import json
import sys

from mpmath import cholesky, erfc, exp, eye, inverse, log, matrix, mp, mpf, pi, sqrt

mp.dps = 40
REFINED_STEPS = 4
ref = json.load(open(sys.argv[1]))
inp = ref["input"]
M, C, D = inp["M"], inp["C"], inp["D"]
jitter, window, sweeps, damp, eps = mpf(inp["jitter"]), inp["window"], inp["sweeps"], mpf(inp["damp"]), mpf(inp["eps"])
vec = lambda rows: [[mpf(v) for v in r] for r in rows]
Phi = lambda x: erfc(-x / sqrt(2)) / 2
dot = lambda a, b: sum(x * y for x, y in zip(a, b))


class Basis:
    def __init__(self, theta):
        self.Z = [theta[i * D:(i + 1) * D] for i in range(M)]
        self.ell = [exp(v) for v in theta[M * D:M * D + D]]
        self.amp, self.noise = exp(theta[M * D + D]), exp(theta[M * D + D + 1])
        K = matrix(M, M)
        for i in range(M):
            for j in range(M):
                K[i, j] = self.c(self.Z[i], self.Z[j]) + (jitter * self.amp if i == j else 0)
        self.L = cholesky(K)
        self.Li = inverse(self.L)

    def c(self, x, z):
        return self.amp * exp(-sum(((a - b) / l) ** 2 for a, b, l in zip(x, z, self.ell)) / 2)

    def features(self, x):
        kx = [self.c(x, z) for z in self.Z]
        w = [sum(self.Li[i, j] * kx[j] for j in range(i + 1)) for i in range(M)]
        return w, self.amp - dot(w, w) + self.noise


def cavity(mean, v, s1, s2):
    e = max(1 - s1 * v, mpf("0.01"))
    return (mean - v * s2) / e, v / e


def derivatives(ay, vy, ak, vk, q):
    B = 2 * q + vy + vk
    alpha = (ay - ak) / sqrt(B)
    beta = exp(-alpha ** 2 / 2) / sqrt(2 * pi) / Phi(alpha)
    return alpha, beta / sqrt(B), beta * (beta + alpha) / B


def winner(y, a, t):
    """Probability of class y on the coarse grid."""
    r = [sqrt(v) for v in t]
    lo, hi = max(m - 5 * s for m, s in zip(a, r)), max(m + 5 * s for m, s in zip(a, r))
    n = max(16, int(mp.ceil((hi - lo) / (mpf("2.5") * min(r)))))
    p = [mpf(0)] * C
    for g in range(n):
        z = [(lo + (hi - lo) * (g + mpf(1) / 2) / n - a[k]) / r[k] for k in range(C)]
        for k in range(C):
            v = exp(-z[k] ** 2 / 2) / r[k]
            for j in range(C):
                if j != k:
                    v *= Phi(z[j])
            p[k] += v
    return p[y] / sum(p)


def totals(A, b, points):
    V, m = [], []
    for k in range(C):
        P, bt = eye(M) + A[k], matrix(b[k])
        for pt in points:
            for i in range(M):
                bt[i] += pt["s2"][k] * pt["w"][i]
                for j in range(M):
                    P[i, j] += pt["s1"][k] * pt["w"][i] * pt["w"][j]
        V.append(inverse(P))
        m.append(V[k] * bt)
    return V, m


theta = sum(vec(inp["Z"]), []) + [mpf(v) for v in inp["log_ell"]] + [mpf(inp["log_amp"]), mpf(inp["log_noise"])]
basis = Basis(theta)
points = []
for i, (x, y) in enumerate(zip(vec(inp["win_X"]) + vec(inp["X"]), inp["win_y"] + inp["y"])):
    s1, s2, p1, p2 = ([mpf(0)] * C for _ in range(4))
    new = i >= len(inp["win_y"])
    if not new:
        s1, s2 = [mpf(v) for v in inp["win_s1"][i]], [mpf(v) for v in inp["win_s2"][i]]
        total = sum(s1) - s1[y]
        for k in range(C):
            if k != y:
                p1[k], p2[k] = s1[y] * s1[k] / total, s2[y] * s1[k] / total
    w, q = basis.features(x)
    points.append(dict(x=x, y=y, w=w, q=q, s1=s1, s2=s2, p1=p1, p2=p2, new=new))

n = len(inp["y"])
A, b = [matrix(vec(a)) for a in inp["A"]], [[mpf(v) for v in r] for r in inp["b"]]
out = max(0, len(points) - max(window, n))
refined = points[out:]
if ref.get("live"):
    refined = refined[-REFINED_STEPS * n:]
V, m = totals(A, b, points)

for s in range(sweeps):
    for pt in refined if s == sweeps - 1 else points[-n:]:
        y, w, first = pt["y"], matrix(pt["w"]), pt["new"] and s == 0
        Vw = [V[k] * w for k in range(C)]
        mean = [dot(m[k], w) for k in range(C)]
        v = [dot(Vw[k], w) for k in range(C)]
        a, vc = zip(*[cavity(mean[k], v[k], pt["s1"][k], pt["s2"][k]) for k in range(C)])
        r = mpf(1)
        if not first:
            p = winner(y, a, [vk + pt["q"] for vk in vc])
            r = (1 - eps) * p / ((1 - eps) * p + eps / C)
        pt["r"], pt["log_z"], pt["cavities"], update, h_sum = r, mpf(0), [], [None] * C, mpf(0)
        for k in range(C):
            if k == y:
                continue
            ay, vy = cavity(mean[y], v[y], pt["p1"][k], pt["p2"][k])
            alpha, g, h = derivatives(ay, vy, a[k], vc[k], pt["q"])
            pt["log_z"] += log(Phi(alpha))
            h = max(r * h - r * (1 - r) * g ** 2, mpf(0))
            update[k], h_sum = (r * g, h, ay, vy), h_sum + h

            def whitened(c, s1, s2):  # mean and covariance of e_c without the site
                e = 1 - s1 * v[c]
                return m[c] + Vw[c] * ((s1 * mean[c] - s2) / e), V[c] + Vw[c] * Vw[c].T * (s1 / e)

            pt["cavities"].append(whitened(y, pt["p1"][k], pt["p2"][k]) + whitened(k, pt["s1"][k], pt["s2"][k]))
        rho = mpf(1) if first else 1 - 2 * (1 - damp) / C if ref.get("live") and pt["new"] else damp
        fresh = {f: [mpf(0)] * C for f in ("s1", "s2", "p1", "p2")}
        for k in range(C):
            if k == y:
                continue
            g, h, ay, vy = update[k]
            e = max(1 - h * vc[k], mpf("0.05"))
            fresh["s1"][k], fresh["s2"][k] = h / e, (h * a[k] - g) / e
            e = max(1 - (h_sum if first else h) * vy, mpf("0.05"))
            fresh["p1"][k], fresh["p2"][k] = h / e, (h * ay + g) / e
        for f in fresh:
            pt[f] = [(1 - rho) * old + rho * new for old, new in zip(pt[f], fresh[f])]
        pt["s1"][y], pt["s2"][y] = sum(pt["p1"]), sum(pt["p2"])
    V, m = totals(A, b, points)

gamma = mpf(1) if inp["horizon"] is None else 1 - mpf(n) / max(inp["horizon"], n)
A, b = [gamma * a for a in A], [[gamma * v for v in r] for r in b]
for pt in points[:out]:
    for k in range(C):
        for i in range(M):
            b[k][i] += pt["s2"][k] * pt["w"][i]
            for j in range(M):
                A[k][i, j] += pt["s1"][k] * pt["w"][i] * pt["w"][j]
points = points[out:]
V, m = totals(A, b, points)

fresh = [pt for pt in points if pt["new"]]


def objective(theta):
    at, f = Basis(theta), mpf(0)
    for pt in fresh:
        w, q = at.features(pt["x"])
        w = matrix(w)
        for my, Vy, mk, Vk in pt["cavities"]:
            t = 2 * q + dot(Vy * w, w) + dot(Vk * w, w)
            f += pt["r"] * log(Phi((dot(my, w) - dot(mk, w)) / sqrt(t)))
    return f


step, grad = mpf("1e-12"), []
for i in range(len(theta)):
    up, down = list(theta), list(theta)
    up[i], down[i] = up[i] + step, down[i] - step
    grad.append((objective(up) - objective(down)) / (2 * step))

lr = mpf(ref["hyper"]["lr"])
moved = [t + lr * g / (abs(g) + mpf("1e-8")) for t, g in zip(theta, grad)]
after = Basis(moved)
cross = matrix(M, M)
for i in range(M):
    for j in range(M):
        cross[i, j] = after.c(basis.Z[i], after.Z[j])
T = basis.Li * cross * after.Li.T
A2, b2 = [T.T * A[k] * T for k in range(C)], [T.T * matrix(b[k]) for k in range(C)]
for pt in points:
    pt["w"], pt["q"] = after.features(pt["x"])
V2, m2 = totals(A2, [list(v) for v in b2], points)

rows = lambda a: [[float(a[i, j]) for j in range(a.cols)] for i in range(a.rows)]
floats = lambda a: [float(v) for v in a]
named = lambda t: dict(Z=[floats(t[i * D:(i + 1) * D]) for i in range(M)], log_ell=floats(t[M * D:M * D + D]),
                       log_amp=float(t[M * D + D]), log_noise=float(t[M * D + D + 1]))
window = lambda f: [floats(pt[f]) for pt in points]
result = dict(
    live=bool(ref.get("live")), input=inp,
    output=dict(A=[rows(a) for a in A], b=[floats(v) for v in b], win_X=window("x"), win_y=[pt["y"] for pt in points],
                win_s1=window("s1"), win_s2=window("s2"), win_p1=window("p1"), win_p2=window("p2"), V=[rows(a) for a in V],
                m=[floats(v) for v in m], log_z_new=[float(pt["log_z"]) for pt in fresh], r_new=[float(pt["r"]) for pt in fresh],
                objective=float(objective(theta))),
    gradient=named(grad),
    hyper=dict(lr=float(lr), **named(moved), T=rows(T), A=[rows(a) for a in A2], b=[floats(v) for v in b2], V=[rows(a) for a in V2],
               m=[floats(v) for v in m2]))
json.dump(result, open(sys.argv[2], "w"))
