// The engine of the app for linear and context-free agents, in plain JavaScript: the same random streams, the same
// choices. Names are those of the Python package; tests/browser/test_static.py compares both.
"use strict";

const Bandits = (() => {
  const MASK64 = (1n << 64n) - 1n;
  const MASK128 = (1n << 128n) - 1n;

  // NumPy's SeedSequence, which makes the start of each stream (bandits/base/randomness.py)
  function seedWords(seed, key) {
    const words = (n) => {
      const found = [];
      for (let rest = BigInt(n); rest > 0n || !found.length; rest >>= 32n) found.push(Number(rest & 0xffffffffn));
      return found;
    };
    const run = words(seed);
    while (run.length < 4) run.push(0);
    const entropy = [...run, ...key.flatMap(words)];
    let constant = 0x43b0d7e5;
    const scramble = (value) => {
      value = (value ^ constant) >>> 0;
      constant = Math.imul(constant, 0x931e8875) >>> 0;
      value = Math.imul(value, constant) >>> 0;
      return (value ^ (value >>> 16)) >>> 0;
    };
    const mix = (x, y) => {
      const mixed = (Math.imul(x, 0xca01f9dd) - Math.imul(y, 0x4973f715)) >>> 0;
      return (mixed ^ (mixed >>> 16)) >>> 0;
    };
    const pool = entropy.slice(0, 4).map(scramble);
    for (let from = 0; from < 4; from++) {
      for (let to = 0; to < 4; to++) if (from !== to) pool[to] = mix(pool[to], scramble(pool[from]));
    }
    for (const word of entropy.slice(4)) for (let to = 0; to < 4; to++) pool[to] = mix(pool[to], scramble(word));
    constant = 0x8b51f9dd;
    const out = [];
    for (let i = 0; i < 8; i++) {
      let value = (pool[i % 4] ^ constant) >>> 0;
      constant = Math.imul(constant, 0x58f38ded) >>> 0;
      value = Math.imul(value, constant) >>> 0;
      out.push(BigInt((value ^ (value >>> 16)) >>> 0));
    }
    return [0, 2, 4, 6].map((i) => out[i] | (out[i + 1] << 32n));
  }

  // Ziggurat tables of NumPy's normal and exponential distributions (Marsaglia, Tsang 2000), with 256 layers
  function ziggurat(r, area, density, inverse, bits) {
    const x = new Float64Array(257);
    x[256] = area / density(r);
    x[255] = r;
    for (let i = 254; i > 0; i--) x[i] = inverse(area / x[i + 1] + density(x[i + 1]));
    const [w, k, f] = [new Float64Array(256), new Float64Array(256), new Float64Array(256)];
    for (let i = 0; i < 256; i++) {
      // layer 0 is the base with the tail, layer i reaches from x[i - 1] to x[i] of this order
      const [outer, inner] = i === 0 ? [x[256], r] : [x[i], i === 1 ? 0 : x[i - 1]];
      w[i] = outer / 2 ** bits;
      k[i] = Math.floor((inner / outer) * 2 ** bits);
      f[i] = density(i === 0 ? 0 : x[i]);
    }
    return { r, w, k, f };
  }
  const NORMAL = ziggurat(
    3.6541528853610088,
    0.004928673233974655,
    (x) => Math.exp(-0.5 * x * x),
    (y) => Math.sqrt(-2 * Math.log(y)),
    52,
  );
  const EXPONENTIAL = ziggurat(
    7.69711747013105,
    0.003949659822581557,
    (x) => Math.exp(-x),
    (y) => -Math.log(y),
    53,
  );

  // PCG64 and what NumPy draws from it. Its state of 128 bits is eight parts of 16, lowest first: their products and
  // sums are exact in double precision.
  const limbs = (n) => Array.from({ length: 8 }, (_, i) => Number((n >> BigInt(16 * i)) & 0xffffn));
  const SUM = new Array(8).fill(0);
  class Generator {
    constructor(seed, key) {
      const [a, b, c, d] = seedWords(seed, key);
      this.increment = ((((c << 64n) | d) << 1n) | 1n) & MASK128;
      this.plus = limbs(this.increment);
      const start = (this.increment + ((a << 64n) | b)) & MASK128;
      this.seek((start * Generator.MULTIPLIER + this.increment) & MASK128);
    }

    seek(state) {
      this.at = limbs(state);
      this.half = null;
    }

    // the next 64 bits: the high and the low half, in `high` and `low`
    next() {
      const { at, plus } = this;
      let carry = 0;
      for (let i = 0; i < 8; i++) {
        let total = carry + plus[i];
        for (let j = 0; j <= i; j++) total += at[j] * FACTOR[i - j];
        SUM[i] = total & 0xffff;
        carry = (total - SUM[i]) / 65536;
      }
      for (let i = 0; i < 8; i++) at[i] = SUM[i];
      let low = (at[0] ^ at[4]) | ((at[1] ^ at[5]) << 16);
      let high = (at[2] ^ at[6]) | ((at[3] ^ at[7]) << 16);
      let turn = at[7] >>> 10;
      if (turn >= 32) [high, low, turn] = [low, high, turn - 32];
      if (turn) [high, low] = [(high >>> turn) | (low << (32 - turn)), (low >>> turn) | (high << (32 - turn))];
      this.high = high >>> 0;
      this.low = low >>> 0;
    }

    uint64() {
      this.next();
      return (BigInt(this.high) << 32n) | BigInt(this.low);
    }

    uint32() {
      if (this.half !== null) {
        const kept = this.half;
        this.half = null;
        return kept;
      }
      this.next();
      this.half = this.high;
      return this.low;
    }

    random() {
      this.next();
      return (this.high * 2 ** 21 + (this.low >>> 11)) / 2 ** 53;
    }

    // 0 to n - 1, n up to 2^20 (Lemire's method)
    below(n) {
      if (n === 1) return 0;
      let product = this.uint32() * n;
      let rest = product % 2 ** 32;
      if (rest < n) {
        const threshold = (2 ** 32 - n) % n;
        while (rest < threshold) {
          product = this.uint32() * n;
          rest = product % 2 ** 32;
        }
      }
      return Math.floor(product / 2 ** 32);
    }

    permutation(values) {
      const out = [...values];
      for (let i = out.length - 1; i > 0; i--) {
        const mask = 2 ** (32 - Math.clz32(i)) - 1;
        let j;
        do j = (this.uint32() & mask) >>> 0;
        while (j > i);
        [out[i], out[j]] = [out[j], out[i]];
      }
      return out;
    }

    normal() {
      const { r, w, k, f } = NORMAL;
      for (;;) {
        this.next();
        const layer = this.low & 255;
        const size = (this.low >>> 9) + (this.high & 0x1fffffff) * 2 ** 23;
        const x = (this.low & 256 ? -1 : 1) * size * w[layer];
        if (size < k[layer]) return x;
        if (layer === 0) {
          for (;;) {
            const beyond = -Math.log1p(-this.random()) / r;
            const height = -Math.log1p(-this.random());
            if (2 * height > beyond * beyond) return Math.floor(size / 256) % 2 ? -(r + beyond) : r + beyond;
          }
        }
        if ((f[layer - 1] - f[layer]) * this.random() + f[layer] < Math.exp(-0.5 * x * x)) return x;
      }
    }

    exponential() {
      const { r, w, k, f } = EXPONENTIAL;
      for (;;) {
        this.next();
        const layer = (this.low >>> 3) & 255;
        const size = (this.low >>> 11) + this.high * 2 ** 21;
        const x = size * w[layer];
        if (size < k[layer]) return x;
        if (layer === 0) return r - Math.log1p(-this.random());
        if ((f[layer - 1] - f[layer]) * this.random() + f[layer] < Math.exp(-x)) return x;
      }
    }

    gamma(shape) {
      if (shape === 1) return this.exponential();
      if (shape < 1) {
        for (;;) {
          const [u, v] = [this.random(), this.exponential()];
          if (u <= 1 - shape) {
            const x = u ** (1 / shape);
            if (x <= v) return x;
          } else {
            const y = -Math.log((1 - u) / shape);
            const x = (1 - shape + shape * y) ** (1 / shape);
            if (x <= v + y) return x;
          }
        }
      }
      const b = shape - 1 / 3;
      const c = 1 / Math.sqrt(9 * b);
      for (;;) {
        let x, v;
        do {
          x = this.normal();
          v = 1 + c * x;
        } while (v <= 0);
        v = v * v * v;
        const u = this.random();
        if (u < 1 - 0.0331 * (x * x) * (x * x)) return b * v;
        if (Math.log(u) < 0.5 * x * x + b * (1 - v + Math.log(v))) return b * v;
      }
    }

    // for a or b above 1, or both 1; the page offers no others
    beta(a, b) {
      if (a <= 1 && b <= 1) {
        // Johnk's method
        for (;;) {
          const [u, v] = [this.random(), this.random()];
          const [x, y] = [u ** (1 / a), v ** (1 / b)];
          if (x + y <= 1 && u + v > 0) {
            if (x + y > 0) return x / (x + y);
            const [logX, logY] = [Math.log(u) / a, Math.log(v) / b];
            const most = Math.max(logX, logY);
            return Math.exp(logX - most - Math.log(Math.exp(logX - most) + Math.exp(logY - most)));
          }
        }
      }
      const [p, q] = [this.gamma(a), this.gamma(b)];
      return p / (p + q);
    }
  }
  Generator.MULTIPLIER = 0x2360ed051fc65da44385df649fccf645n;
  const FACTOR = limbs(Generator.MULTIPLIER);

  const STREAMS = { world: 0, clicks: 1, agent: 2, layout: 3, ties: 9 };
  const generator = (seed, stream, row, block = 0) => new Generator(seed, [STREAMS[stream], row, 0, block]);

  // Draws of every step, in fixed blocks
  class Blocks {
    constructor(seed, stream, row, width, draw) {
      Object.assign(this, { seed, stream, row, width, draw, block: -1 });
      const length = 2 ** Math.floor(Math.log2(Math.max(1, Math.floor(32768 / width))));
      this.length = Math.max(16, Math.min(1024, length));
      this.drawn = new Float64Array(this.length * width);
    }

    at(step, i = 0) {
      const block = Math.floor(step / this.length);
      if (block !== this.block) {
        const source = generator(this.seed, this.stream, this.row, block);
        for (let n = 0; n < this.drawn.length; n++) this.drawn[n] = this.draw(source);
        this.block = block;
      }
      return this.drawn[(step % this.length) * this.width + i];
    }
  }

  // Ties are broken by a hash of the row's key, the step and the candidate (bandits/base/selection.py)
  const TIE = 2 ** -40;
  const tiedFrom = (highest) => (Number.isFinite(highest) ? highest - TIE * Math.abs(highest) : highest);
  function hashed(key, counter) {
    let word = (key + BigInt(counter + 1) * 0x9e3779b97f4a7c15n) & MASK64;
    word = ((word ^ (word >> 30n)) * 0xbf58476d1ce4e5b9n) & MASK64;
    word = ((word ^ (word >> 27n)) * 0x94d049bb133111ebn) & MASK64;
    return word ^ (word >> 31n);
  }
  function bestOf(scores, key, step) {
    let [best, highest, floor, tied] = [0, -Infinity, -Infinity, false];
    for (let k = 0; k < scores.length; k++) {
      const score = scores[k];
      if (score < floor) continue;
      if (score > highest) {
        floor = tiedFrom(score);
        [best, tied, highest] = [k, highest >= floor, score];
      } else tied = true;
    }
    if (!tied) return best;
    const decision = hashed(key, step);
    let most = -1n;
    for (let k = 0; k < scores.length; k++) {
      if (scores[k] < floor) continue;
      const priority = hashed(decision, k);
      if (priority >= most) [best, most] = [k, priority];
    }
    return best;
  }

  // One replication of a simulator: what every agent of it meets
  class World {
    constructor(simulator, seed, row) {
      const layout = simulator.layout === "per_row" ? row : 0;
      const source = generator(seed, "layout", layout);
      if (simulator.kind === "petshop") {
        const { n_products: K, n_users: users } = simulator;
        const categories = source.permutation(Array.from({ length: K }, (_, k) => k % 5));
        this.personas = Array.from({ length: users }, () => source.below(4));
        this.users = new Blocks(seed, "world", row, 1, (from) => from.below(users));
        this.probabilities = simulator.click_rates.map((rates) => categories.map((c) => rates[c]));
        const inner = simulator.features === "interaction";
        this.columns = simulator.click_rates.map((_, p) => categories.map((c) => (inner ? [5 * p + c] : [p, 4 + c])));
        this.features = inner ? 20 : 9;
      } else {
        const { n_arms: K, values, means } = simulator;
        const drawn = means === "fixed" ? values : Array.from({ length: K }, () => source.random());
        this.probabilities = [drawn];
        this.columns = [drawn.map(() => [0])];
        this.features = 1;
      }
      this.best = this.probabilities.map((p) => p.indexOf(Math.max(...p)));
      this.average = this.probabilities.map((p) => p.reduce((a, b) => a + b, 0) / p.length);
      this.arms = this.probabilities[0].length;
      this.uniforms = new Blocks(seed, "clicks", row, 1, (from) => from.random());
      this.key = generator(seed, "ties", row).uint64();
    }

    context(step) {
      return this.personas ? this.personas[this.users.at(step)] : 0;
    }
  }

  // Ridge regression with one model per arm (bandits/models/linear)
  class Ridge {
    constructor(world, ridge) {
      const [K, D] = [world.arms, world.features];
      Object.assign(this, { world, D, count: new Int32Array(K), theta: new Float64Array(K * D), b: new Float64Array(K * D) });
      this.A = new Float64Array(K * D * D);
      this.inverse = new Float64Array(K * D * D);
      for (let i = 0; i < K * D; i++) {
        const diagonal = i * D + (i % D);
        this.A[diagonal] = ridge;
        this.inverse[diagonal] = 1 / ridge;
      }
      const contexts = world.columns.length;
      // mean and width of an arm change only when it learns
      this.known = new Uint8Array(contexts * K);
      this.means = new Float64Array(contexts * K);
      this.widths = new Float64Array(contexts * K);
      this.u = new Float64Array(D);
    }

    predict(c, k) {
      const at = c * this.world.arms + k;
      if (!this.known[at]) {
        const { D, theta, inverse } = this;
        const columns = this.world.columns[c][k];
        let [mean, quadratic] = [0, 0];
        for (const a of columns) {
          mean += theta[k * D + a];
          let inner = 0;
          for (const j of columns) inner += inverse[(k * D + a) * D + j];
          quadratic += inner;
        }
        this.means[at] = mean;
        this.widths[at] = Math.sqrt(Math.max(quadratic, 0));
        this.known[at] = 1;
      }
      return at;
    }

    learn(c, k, reward) {
      const { D, A, b, u, theta, inverse } = this;
      const columns = this.world.columns[c][k];
      let [quadratic, error] = [0, reward];
      for (let i = 0; i < D; i++) {
        u[i] = 0;
        for (const a of columns) u[i] += inverse[(k * D + i) * D + a];
      }
      for (const a of columns) {
        quadratic += u[a];
        error -= theta[k * D + a];
        b[k * D + a] += reward;
        for (const j of columns) A[(k * D + a) * D + j] += 1;
      }
      const gain = 1 / (1 + quadratic);
      for (let i = 0; i < D; i++) {
        if (u[i] === 0) continue;
        for (let j = 0; j < D; j++) if (u[j] !== 0) inverse[(k * D + i) * D + j] -= u[i] * u[j] * gain;
        theta[k * D + i] += u[i] * (gain * error);
      }
      this.count[k] += 1;
      if (this.count[k] % 4096 === 0) this.refresh(k);
      for (let context = 0; context < this.world.columns.length; context++) {
        this.known[context * this.world.arms + k] = 0;
      }
    }

    // the inverse afresh, by Gauss and Jordan's elimination of a positive definite matrix
    refresh(k) {
      const { D } = this;
      const left = Array.from({ length: D }, (_, i) => {
        const row = Array.from(this.A.subarray((k * D + i) * D, (k * D + i + 1) * D));
        return [...row, ...row.map((_, j) => Number(i === j))];
      });
      for (let i = 0; i < D; i++) {
        const pivot = left[i][i];
        left[i] = left[i].map((value) => value / pivot);
        for (let j = 0; j < D; j++) {
          const factor = left[j][i];
          if (j !== i && factor) left[j] = left[j].map((value, n) => value - factor * left[i][n]);
        }
      }
      for (let i = 0; i < D; i++) {
        let total = 0;
        for (let j = 0; j < D; j++) {
          this.inverse[(k * D + i) * D + j] = left[i][D + j];
          total += left[i][D + j] * this.b[k * D + j];
        }
        this.theta[k * D + i] = total;
      }
    }
  }

  class Agent {
    constructor(params, world, seed, row) {
      Object.assign(this, { params, world, seed, row, scores: new Float64Array(world.arms) });
    }

    learn() {}

    // the arm with the highest score, or with probability epsilon a random one
    explored(step, best) {
      const { epsilon, decay } = this.params;
      this.uniforms ??= new Blocks(this.seed, "agent", this.row, 2, (from) => from.random());
      if (this.uniforms.at(step) >= epsilon / (1 + decay * step)) return best();
      return Math.min(Math.floor(this.uniforms.at(step, 1) * this.world.arms), this.world.arms - 1);
    }
  }

  class LinearAgent extends Agent {
    constructor(...given) {
      super(...given);
      this.model = new Ridge(this.world, this.params.ridge);
    }

    // mean + factor times width
    highest(step, context, factor) {
      const { means, widths } = this.model;
      for (let k = 0; k < this.world.arms; k++) {
        const at = this.model.predict(context, k);
        this.scores[k] = means[at] + factor(k, widths[at]);
      }
      return bestOf(this.scores, this.world.key, step);
    }

    learn(context, arm, reward) {
      this.model.learn(context, arm, reward);
    }
  }

  class Counts extends Agent {
    constructor(...given) {
      super(...given);
      this.shown = new Float64Array(this.world.arms);
      this.clicks = new Float64Array(this.world.arms);
    }

    learn(context, arm, reward) {
      this.shown[arm] += 1;
      this.clicks[arm] += reward;
    }

    highest(step, score) {
      for (let k = 0; k < this.world.arms; k++) this.scores[k] = score(k, this.shown[k], this.clicks[k]);
      return bestOf(this.scores, this.world.key, step);
    }
  }

  const AGENTS = {
    linucb: class extends LinearAgent {
      choose(step, context) {
        return this.highest(step, context, (_, width) => this.params.alpha * width);
      }
    },
    lints: class extends LinearAgent {
      choose(step, context) {
        const sigma = Math.sqrt(this.params.sigma2);
        this.normals ??= new Blocks(this.seed, "agent", this.row, this.world.arms, (from) => from.normal());
        return this.highest(step, context, (k, width) => sigma * width * this.normals.at(step, k));
      }
    },
    epsilon_greedy: class extends LinearAgent {
      choose(step, context) {
        return this.explored(step, () => this.highest(step, context, () => 0));
      }
    },
    ucb1: class extends Counts {
      choose(step) {
        const logarithm = 2 * Math.log(Math.max(step, 1));
        const bonus = (n) => this.params.alpha * Math.sqrt(logarithm / n);
        return this.highest(step, (_, n, clicks) => (n > 0 ? clicks / n + bonus(n) : Infinity));
      }
    },
    beta_ts: class extends Counts {
      constructor(...given) {
        super(...given);
        this.source = generator(this.seed, "agent", this.row);
        // a step has 2^40 numbers of the stream: x -> factor x + addend, 40 times doubled
        let [factor, addend] = [Generator.MULTIPLIER, this.source.increment];
        for (let i = 0; i < 40; i++) {
          [factor, addend] = [(factor * factor) & MASK128, ((factor + 1n) * addend) & MASK128];
        }
        const origin = this.source.at.reduceRight((n, part) => (n << 16n) | BigInt(part), 0n);
        Object.assign(this, { factor, addend, origin, at: 0 });
      }

      choose(step) {
        for (; this.at < step; this.at++) this.origin = (this.origin * this.factor + this.addend) & MASK128;
        this.source.seek(this.origin);
        const { prior_clicks: a, prior_misses: b } = this.params;
        return this.highest(step, (_, n, clicks) => this.source.beta(a + clicks, b + n - clicks));
      }
    },
    epsilon_greedy_averages: class extends Counts {
      choose(step) {
        const mean = (_, n, clicks) => (n > 0 ? clicks / n : this.params.start);
        return this.explored(step, () => this.highest(step, mean));
      }
    },
    random: class extends Agent {
      choose(step) {
        const { arms } = this.world;
        this.uniforms ??= new Blocks(this.seed, "agent", this.row, arms, (from) => from.random());
        for (let k = 0; k < arms; k++) this.scores[k] = this.uniforms.at(step, k);
        return this.scores.indexOf(Math.max(...this.scores));
      }
    },
    oracle: class extends Agent {
      choose(step, context) {
        return this.world.best[context];
      }
    },
  };

  // All replications of one agent of an experiment; arrays (steps x replications) of what happened
  class Lane {
    constructor(experiment, agent) {
      const { simulator, seed, steps, replications: rows } = experiment;
      this.rows = Array.from({ length: rows }, (_, row) => {
        const world = new World(simulator, seed, row);
        return { world, agent: new AGENTS[agent.kind](agent, world, seed, row) };
      });
      Object.assign(this, { step: 0, steps, items: new Uint16Array(steps * rows), rewards: new Uint8Array(steps * rows) });
      const column = () => new Float64Array(steps * rows);
      Object.assign(this, { value: column(), best: column(), average: column() });
    }

    advance(n) {
      const [end, R] = [Math.min(this.step + n, this.steps), this.rows.length];
      this.rows.forEach(({ world, agent }, r) => {
        for (let step = this.step; step < end; step++) {
          const [context, at] = [world.context(step), step * R + r];
          const arm = agent.choose(step, context);
          const means = world.probabilities[context];
          const reward = Number(world.uniforms.at(step) < means[arm]);
          agent.learn(context, arm, reward);
          this.items[at] = arm;
          this.rewards[at] = reward;
          this.value[at] = means[arm];
          this.best[at] = means[world.best[context]];
          this.average[at] = world.average[context];
        }
      });
      this.step = end;
    }
  }

  return { Lane, AGENTS, Generator };
})();

if (typeof module !== "undefined") module.exports = Bandits;
