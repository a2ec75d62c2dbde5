// Adds up; is wrong, and less sure, above 12. Every call of a question gives the same answer.
module.exports = class {
  id() { return 'toy'; }
  async callApi(prompt) {
    const asked = prompt.slice(3);
    if (asked === 'broken') return { error: 'no such question' };
    const [a, b] = asked.split('+').map(Number);
    const sum = asked === 'half' ? NaN : a + b;
    const output = Number.isNaN(sum) ? 'a guess' : String(sum > 12 ? sum + 1 : sum);
    const sure = Number.isNaN(sum) ? 0.3 : sum > 12 ? 0.6 : 0.9 - sum / 100;
    return {
      output,
      tokenUsage: { total: 6, prompt: 4, completion: 2 },
      logProbs: [Math.log(sure), Math.log(0.99)],
      metadata: { confidence: sure },
    };
  }
};
