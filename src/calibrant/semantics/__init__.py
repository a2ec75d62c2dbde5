"""Which answers mean the same, and which are right.

What the steps above this layer read (they never import it): two tables, written once by
``annotate(draws, questions, *, options=Options()) -> Annotated`` (unpacks to
``draws, semantics``).

``draws`` comes back with these columns filled, row for row in the order given:

=====================  ==============================================================
answer                 str or null: the final answer found in ``text``. For the votes
                       (``p_true``, ``p_true_cand``) it is ``"True"`` or ``"False"``.
                       Null for refusals, empty texts and probes that hold no answer.
stated_confidence      f64 or null: the confidence written in the text, in [0, 1]
                       (``verb``: of ``answer``; ``self_ask``: of the answer asked
                       about; ``verb_topk``: of the first listed answer).
stated_answers         list[str] or null: the listed answers (``verb_topk`` only).
stated_confidences     list[f64] or null: their confidences; null inside where one
                       could not be read.
=====================  ==============================================================

``semantics`` has one row per draw, the same order:

=====================  ==============================================================
question_id, model,    the key of the draw
purpose, draw
class_id               i64 or null: the meaning. Shared by all purposes of one question
                       and model, so a ``verb`` answer and a sample of the same meaning
                       have the same id. Ids count from 0 in order of first appearance
                       in the table; null where nothing was attempted.
correct                bool or null (null: not attempted or not gradable, see reason)
reason                 attempted, refusal, empty, unparsed, vote, probe, no reference
grader                 which rule or grader decided (``exact``, ``number``, ...)
stated_classes         list[i64] or null: class of each listed answer (``verb_topk``),
                       from the same ids
stated_correct         list[bool] or null: grade of each listed answer
=====================  ==============================================================
"""
